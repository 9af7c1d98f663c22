//! Logical replication between servers that all write.
