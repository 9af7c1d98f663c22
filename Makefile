# What a person types; the work is done by scripts/.
#
# PG_CONFIG chooses the server, by its pg_config; without it, Debian's
# PostgreSQL 15. SNOWFLAKE_CACHE moves the cache directory.

ifneq ($(PG_CONFIG),)
export PG_CONFIG
endif

.DEFAULT_GOAL := help
.PHONY: help demo demo-stop test install soak online-load bench clean clean-cache

help: ## this list
	@echo "snowflake: primary keys for PostgreSQL that never come twice"
	@echo
	@sed -nE 's/^([a-z-]+): ## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
	@echo
	@echo "  PG_CONFIG=/path/to/pg_config chooses another server than Debian's PostgreSQL 15."

demo: ## see it work: a throwaway server, 8 clients, a kill -9, no duplicate
	@scripts/demo start

demo-stop: ## end the demo's server
	@scripts/demo stop

test: ## every check and test, on private copies of the server (from nothing: about 20 minutes on two cores)
	@scripts/test

install: ## install into a real server: make install PG_CONFIG=/path/to/pg_config
	@scripts/install

soak: ## faults of all kinds against 8 sessions: make soak SECONDS=600 SEED=1
	@scripts/soak $(SECONDS) $(SEED)

online-load: ## online migrations beside pgbench: make online-load SCALE=20 ORDERS=1000000
	@scripts/online-load $(SCALE) $(ORDERS)

bench: ## measure beside other ways to make IDs, with PostgreSQL 15 and 18: docs/benchmarks.md (an hour and a half; OPTIONS=--quick)
	@scripts/bench $(OPTIONS)

clean: ## delete what was built in the checkout
	@cargo clean

clean-cache: ## delete cargo-pgrx, the copies of servers and PostgreSQL 18 (after make demo-stop)
	@scripts/clean-cache
