//! What an exporter for Prometheus reads from a server.
