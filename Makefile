# What a person types; the work is done by scripts/.
#
# PG_CONFIG chooses the server, by its pg_config. Without it what builds
# and installs takes the one on PATH, and what tests private copies of a server takes
# Debian's PostgreSQL 15, or versions of its own. SNOWFLAKE_CACHE moves the cache directory.

ifneq ($(PG_CONFIG),)
export PG_CONFIG
endif
ifneq ($(TREE),)
export TREE
endif
ifneq ($(VERSIONS),)
export VERSIONS
endif
ifneq ($(OPTIONS),)
export OPTIONS
endif

.DEFAULT_GOAL := all
.PHONY: all help demo demo-stop check test test-full installcheck install uninstall simulate soak sqlsmith peers online-load new-rows bench clean clean-cache
.PHONY: deb pgxn tree site test-packages test-clients test-neighbours test-servers test-citus

all: ## compile the extension for the server of PG_CONFIG, with cargo alone (2 minutes)
	@scripts/build
	@echo "    make install installs it; make help lists what else there is to do."

# What follows `##` is a target's line here; a line `#: ` below it is one more.
help: ## this list
	@echo "Snowflake IDs for PostgreSQL. What there is to do, and how long it takes on two cores:"
	@echo
	@sed -nE -e 's/^([a-z-]+): ## (.*)/  make \1\t\2/p' -e 's/^#: (.*) -- (.*)/    \1\t\2/p' $(MAKEFILE_LIST) | expand -t 36
	@echo
	@echo "  PG_CONFIG=/path/to/pg_config chooses the server. Without it make, install, uninstall, deb, tree and demo"
	@echo "  take that of the pg_config on PATH, and the others Debian's PostgreSQL 15, or versions of their own."
	@echo "  The first make test compiles everything, for some minutes."

demo: ## see it work: a throwaway server, 8 clients, a kill -9, no duplicate (2 minutes the first time)
	@scripts/demo start

demo-stop: ## end the demo's server
	@scripts/demo stop

check: ## formatting, clippy, scripts, spelling, the tests of the algorithm (seconds, once compiled)
	@scripts/check

test: ## the best of every kind of test, on private copies of the server (8 minutes the first time, then 3)
#: test ONLY=mark:: -- the tests of servers in the module mark, or with that name (a minute)
#: test ONLY=crates -- the tests of the crates (half a minute)
#: test ONLY=install -- make, make install and make uninstall (half a minute, once compiled)
	@scripts/test

test-full: ## every check and test, with every version of PostgreSQL (two hours): before a release
	@.ci/run --full

installcheck: ## compare what a throwaway server answers with test/regress/expected (15 seconds)
#: installcheck TESTS='text copy' -- these files only
#: installcheck ACCEPT=1 -- make the answers the expected output; then read git diff
#: installcheck RUNNING=1 -- on the server that PGHOST and PGPORT lead to
	@scripts/installcheck

install: ## install it into the server of PG_CONFIG, with sudo where needed (a second, after make)
#: install DESTDIR=/path -- below that directory, for packages
	@scripts/install

uninstall: ## remove it from the server of PG_CONFIG
	@scripts/install --uninstall

deb: ## build a Debian package for the server of PG_CONFIG; docs/packages.md (2 minutes)
	@scripts/package-deb

pgxn: ## make the archive for PGXN from the last commit (a second)
	@scripts/package-pgxn

tree: ## make an archive for extension_control_path of PostgreSQL 18 (2 minutes)
	@scripts/package-tree

site: ## make a site with search of the documents, in target/site, with MkDocs from PyPI (half a minute)
	@scripts/site

test-packages: ## build each package, install it into a clean place and use it (20 minutes)
	@scripts/test-packages

test-clients: ## use it with clients, ORMs and poolers from their registries; docs/clients.md (10 minutes)
#: test-clients CLIENTS='psycopg prisma' -- these only
	@scripts/test-clients $(CLIENTS)

test-neighbours: ## beside thirteen extensions of Debian, in both orders of the libraries (half a minute, once compiled)
	@scripts/test-neighbours

test-servers: ## several servers at once: logical replication, Patroni, postgres_fdw, monitoring (10 minutes)
#: test-servers TESTS=patroni:: -- these only
	@scripts/test-servers $(TESTS)

test-citus: ## on a cluster of Citus: make test-citus CITUS=/path/to/its/tree (5 minutes, once compiled)
#: test-citus TESTS=e4 CITUS=… -- the tests whose names begin like this
	@CITUS='$(CITUS)' scripts/test-citus $(TESTS)

simulate: ## the protocol on simulated clocks and disks: make simulate MINUTES=10 SEED=17 (a minute, once compiled)
	@MINUTES='$(MINUTES)' SEED='$(SEED)' scripts/simulate

sqlsmith: ## statements of SQLsmith beside a soak, on PostgreSQL 18 with assertions: make sqlsmith MINUTES=30 SEED=1
	@scripts/soak --sqlsmith '$(MINUTES)' '$(SEED)'

peers: ## whether this and other functions repeat IDs: docs/peers.md (3 minutes; FILES='one.sql')
	@scripts/peers $(FILES)

soak: ## faults of all kinds against 8 sessions: make soak MINUTES=60 SEED=1
	@scripts/soak '$(MINUTES)' '$(SEED)'

online-load: ## online migrations beside pgbench: make online-load SCALE=20 ORDERS=1000000
#: online-load OPTIONS=--keep-sequence -- the keys are widened only
	@scripts/online-load '$(SCALE)' '$(ORDERS)'

new-rows: ## readers of new rows beside writers and faults: make new-rows ROWS=10000000 SECONDS=600
#: new-rows OPTIONS=--asynchronous -- with synchronous_commit = off
	@scripts/new-rows '$(ROWS)' '$(SECONDS)'

bench: ## measure beside other ways to generate IDs, with PostgreSQL 15 and 18: docs/benchmarks/ (an hour and a half; OPTIONS=--quick)
	@scripts/bench $(OPTIONS)

clean: ## delete what was built in the checkout
	@cargo clean

clean-cache: ## delete the copies of servers and PostgreSQL 18 (after make demo-stop)
	@scripts/clean-cache
