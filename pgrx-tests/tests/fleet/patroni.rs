//! A cluster of Patroni with writers throughout failovers and a switchover.
