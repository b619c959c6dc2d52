"""The alerts, each written once (`alerts.toml`), as rules for Prometheus and as rules that Grafana evaluates itself."""
