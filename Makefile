GO      ?= go
MODULES  = . store/etcd store/kubernetes store/nats testutil/mongopeer/server testutil/natspeer/server internal/chaos internal/fencetest internal/promtest internal/portable examples/gocron examples/beside examples/deploy cmd/full
LINT     = golangci-lint
# What has the build tag of the store of SQL Server, which was never run on one.
UNTESTED = -tags sqlserver ./store/sqlserver ./cmd/leasectl/internal/storeuri
# Packages whose tests start servers or many processes, with bounds in real time: two of them run at once. Of these and of
# all others, those with the longest tests start first, so that none of them runs alone at the end.
SERVED   = /store/(azblob|cosmos|mongo|mysql|postgres|redis|s3)$$|/testutil/(.*peer|leasectltest)$$|/leasectl/(app|internal/guard)$$|/internal/(docs|linear)$$|/examples$$
SLOWEST  = ./store/mongo ./cmd/leasectl/app ./store/cosmos ./cmd/leasectl/internal/guard
# Of all these, those that make prove tests one at a time.
STORES   = /store/(azblob|cosmos|mongo|mysql|postgres|redis|s3|sqlite)$$
LONGEST  = ./workerlease ./testutil/sim ./store/sqlite

# What is tested in a browser, by make page.
BROWSED  = /testutil/internal/pagetest$$

# Packages without goroutines, or whose tests run other programs only, or leasectl, which its
# own tests run: the race detector has nothing to find there.
SINGLE   = /(testutil/((postgres|mysql|redis|etcd|s3|azurite|kube|nats)peer|leasectltest)|slots|priority|workerlease/(history|verify|internal/gap|internal/machine|internal/timeline)|internal/(docs|fuzzed|model|recordtest))$$|/examples|/internal/(figures|estimate)

# What the gate runs with the race detector: our goroutines, in bubbles, on fakes, and on stores in memory.
ENGINE   = ./workerlease/... ./store ./store/internal/... ./store/memory ./store/mongo ./store/cosmos ./store/storekit ./testutil/faultstore ./testutil/clocks $(addprefix ./cmd/leasectl/internal/,doctor interrupt listen notify page runlog supervise)

# Packages with properties, and the tests that draw what these are checked with.
DRAWN    = ./slots ./priority ./store ./internal/skew ./testutil/sim ./workerlease/internal/machine ./workerlease/internal/timeline
DRAWS    = Property|OffsetsAreOrdered|LeadIsBounded|KeysAreOrdered|ADoneSlotComesBack|ApartHolds|RecordsDoWhat

# A busy machine can fail these tests, so make prove runs each by itself.
REALTIME = $(shell awk -F'\t' '/^\.\//{print $$2}' internal/suites/realtime.tsv | sort -u | paste -sd'|')
APART    = -skip '^($(REALTIME))$$'
TIMED    = $(shell awk -F'\t' '/^\.\//{print $$1}' internal/suites/realtime.tsv | sort -u)

# All but make test and make check prove something, and leave nothing out.
export SLOTLEASE_SUITES ?= all

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: fmt lint test ## Format, lint and test: run it before a commit

.PHONY: test
test: export SLOTLEASE_SUITES = quick
test: ## Run the quick tests: pure packages, the engine, memory, SQLite, and MongoDB on a peer
	$(GO) test ./...

.PHONY: prove prove-pure prove-served prove-store prove-modules
prove: ## Run all that the gate leaves out, step by step, for some hours: make prove STORE=redis, or STEPS='^chaos|page'
	.ci/prove $(if $(STEPS)$(STORE),'$(or $(STEPS),(^|[ /])$(STORE)( |$$$$))')
prove-pure:
	$(GO) test -timeout 30m $(APART) $(filter-out ./store/sqlite,$(LONGEST)) $$($(GO) list ./... | grep -vE '$(SERVED)|$(STORES)|$(BROWSED)')
prove-served:
	$(GO) test -timeout 30m -p 2 $(APART) $$($(GO) list ./... | grep -E '$(SERVED)' | grep -vE '$(STORES)')
prove-store:
	$(GO) test -timeout 30m $(APART) ./store/$(STORE)
prove-modules:
	$(GO) test $(UNTESTED)
	cd examples/gocron && $(GO) test ./...
	cd examples/beside && $(GO) test ./...
	cd examples/deploy && $(GO) test ./...
	cd cmd/full && $(GO) test ./...

# With -race, Go checks each conversion of a pointer, too, and each access to memory. In SQLite, which
# is C made Go, those take most of the time of its tests; the pointers are C's, and its own mutexes
# guard its memory. The driver around it is looked at.
TRUSTED  = -gcflags='modernc.org/...=-d=checkptr=0' -gcflags='modernc.org/sqlite/lib=-race=false' -gcflags='modernc.org/libc/...=-race=false'

# A program with the race detector sleeps for a second before it exits, each process of a test too.
.PHONY: race
race: export GORACE ?= atexit_sleep_ms=10
# What shows as a race shows in a few rounds; make soak has many.
race: export SLOTLEASE_RACE_ROUNDS ?= 10
race: export SLOTLEASE_SIM_SEEDS ?= 3
race: ## Run the tests of code with goroutines with the race detector; fail without the MongoDB server
	REQUIRE_STORES=$${REQUIRE_STORES:-mongo} $(GO) test -race -short -vet=off $(TRUSTED) -shuffle=$(or $(SLOTLEASE_SEED),on) -timeout 1h $(APART) $(LONGEST) $$($(GO) list ./... | grep -vE '$(SERVED)|$(SINGLE)|$(BROWSED)')
	REQUIRE_STORES=$${REQUIRE_STORES:-mongo} $(GO) test -race -short -vet=off $(TRUSTED) -shuffle=$(or $(SLOTLEASE_SEED),on) -timeout 1h -p 2 $(APART) $(SLOWEST) $$($(GO) list ./... | grep -E '$(SERVED)' | grep -vE '$(SINGLE)')
	$(GO) test -race -short -vet=off $(TRUSTED) -timeout 1h -p 1 -parallel 1 -run '^($(REALTIME))$$' $(TIMED)
	$(GO) test -race -vet=off $(TRUSTED) $(UNTESTED)

.PHONY: race-engine
race-engine: export GORACE ?= atexit_sleep_ms=10
race-engine: export SLOTLEASE_SUITES = quick
race-engine: export SLOTLEASE_RACE_ROUNDS ?= 10
race-engine: ## Run the quick tests of the engine with the race detector, as the gate does
	$(GO) test -race -short -vet=off $(TRUSTED) -shuffle=$(or $(SLOTLEASE_SEED),on) -timeout 1h $$($(GO) list $(ENGINE) | grep -vE '$(SINGLE)')

# The contract, by the first path to each store. That of memory, SQLite and MongoDB is in make test.
CONTRACT = -count=1 -timeout 9m $(OUTPUT) -run '^(TestConformance|Test(The|A)LedgerKeepsTheContractOfAStore)$$'
OUTPUT   = -v

.PHONY: conformance
conformance: export SLOTLEASE_SUITES = quick
conformance: export SLOTLEASE_RACE_ROUNDS ?= 50
conformance: export REQUIRE_STORES = cosmos,postgres,mariadb,redis,etcd,s3,azurite,nats
conformance: ## Check that stores keep the contract on their servers, as the gate does
	$(GO) test -p 4 $(CONTRACT) $(addprefix ./store/,azblob cosmos mysql postgres redis s3)
	for store in etcd nats; do $(GO) -C store/$$store test $(CONTRACT) . || exit 1; done
	@# What they make of replies alone, with the race detector.
	for store in etcd nats kubernetes; do REQUIRE_STORES= GORACE=atexit_sleep_ms=10 $(GO) -C store/$$store test -race -count=1 -timeout 9m $(OUTPUT) . || exit 1; done

.PHONY: properties
properties: ## Check each property with so many draws: make properties CHECKS=1000000
	$(GO) test -count=1 -timeout 12h -run '$(DRAWS)' $(DRAWN) -rapid.checks=$(or $(CHECKS),1000000)

.PHONY: sim
sim: ## Simulate workers for long: make sim SEEDS=2000 HOURS=6
	SLOTLEASE_SIM_SEEDS=$(or $(SEEDS),2000) $(GO) test -run 'NoTwoHoldersWorkAtOnce|BeyondTheAssumptions|AfterACrash|PoisonClears|ReplaysExactly' -timeout 12h -v ./testutil/sim -sim.hours $(or $(HOURS),6)

.PHONY: regimes
regimes: ## Simulate other worlds for long: wrong clocks, elections, schedules, crowds: make regimes SEEDS=20000 HOURS=720
	SLOTLEASE_SIM_SEEDS=$(or $(SEEDS),2000) $(GO) test -run NoTwoHoldersInAnyRegime -timeout 12h -v ./testutil/sim -sim.hours $(or $(HOURS),720)

.PHONY: millennium
millennium: ## Simulate 1,000 years of 8 workers in all of those worlds, for hours: make millennium KEEP=/tmp/parts goes on where it was
	SLOTLEASE_SIM_KEEP=$(KEEP) $(MAKE) regimes SEEDS=20900 HOURS=720

.PHONY: variants
variants: ## Break the engine on purpose and search for the seeds that catch each break
	$(GO) test -run TestSimulationCatchesEveryBrokenVariant -timeout 1h -v ./workerlease -variants.search

.PHONY: linear
linear: ## Check that all stores are linearizable, also over broken connections
	REQUIRE_STORES=mongo,postgres,mariadb,redis,s3,azurite SLOTLEASE_LINEAR_OPS=$(or $(OPS),120000) $(GO) test -count=1 -timeout 1h -v -run Linearizable ./internal/linear ./testutil/sim
	cd store/etcd && REQUIRE_STORES=etcd SLOTLEASE_LINEAR_OPS=$(or $(OPS),120000) $(GO) test -count=1 -timeout 1h -v -run Linearizable .
	cd store/nats && REQUIRE_STORES=nats SLOTLEASE_LINEAR_OPS=$(or $(OPS),120000) $(GO) test -count=1 -timeout 1h -v -run Linearizable .
	cd internal/chaos && REQUIRE_STORES=mongo $(GO) test -count=1 -timeout 1h -v ./linear

.PHONY: mongodb
mongodb: ## Run the suite on a real replica set and cluster: make mongodb MONGOD=/path/mongod MONGOS=/path/mongos
	@test -n '$(MONGOD)' || echo 'MONGOD names no program: nothing is shown on real servers'
	@test -n '$(MONGOS)' || echo 'MONGOS names no program: nothing is shown on a sharded cluster'
	MONGOD='$(MONGOD)' MONGOS='$(MONGOS)' $(GO) test -count=1 -timeout 1h -v -run 'OnAReal|RealServers' ./testutil/mongopeer ./store/mongo

# The program is built once, in some minutes, and kept in the user's cache.
KUBE_VERSION   := $(shell sed -n 's,^.k8s.io/kubernetes v,,p' testutil/kubepeer/server/go.mod)
KUBE_APISERVER ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slotlease/kube-apiserver-$(KUBE_VERSION)

.PHONY: kubernetes
kubernetes: $(KUBE_APISERVER) ## Build a real API server of Kubernetes, and run the suites on it (needs Debian's etcd-server; 10 minutes the first time)
	KUBE_APISERVER='$(KUBE_APISERVER)' REQUIRE_STORES=etcd,kubernetes $(GO) test -count=1 -v ./testutil/kubepeer
	cd store/kubernetes && KUBE_APISERVER='$(KUBE_APISERVER)' REQUIRE_STORES=etcd,kubernetes $(GO) test -count=1 -timeout 30m -v ./...
	cd examples/deploy && KUBE_APISERVER='$(KUBE_APISERVER)' REQUIRE_STORES=etcd,kubernetes $(GO) test -count=1 -v -run 'Kubernetes|Chart' .
$(KUBE_APISERVER):
	cd testutil/kubepeer/server && GOFLAGS= CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='-s -w -X k8s.io/component-base/version.gitVersion=v$(KUBE_VERSION)' -o '$@' .

.PHONY: model
model: ## Search the model exhaustively (needs spin and gcc; some minutes, 1 GB per core)
	SLOTLEASE_MODEL=long REQUIRE_SPIN=1 $(GO) test -count=1 -v -timeout 3h ./internal/model

.PHONY: takeover rolling done overrun escapes
takeover: ## Kill holders, as real processes: make takeover TRIES=100 STORE=sqlite SEED=1
	cd internal/chaos && $(GO) run . -scenario takeover -tries $(or $(TRIES),100) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)
rolling: ## Deploy workers of a job and of a leader, in any order, over a boundary: make rolling TRIES=20 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario rolling -tries $(or $(TRIES),20) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0) -older '$(OLDER)'
done: ## Kill workers that do a job once per slot: make done TRIES=200 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario done -tries $(or $(TRIES),200) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0) -older '$(OLDER)'
overrun: ## Run jobs that take 1.3 and 5 times their slots: make overrun TRIES=40 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario overrun -tries $(or $(TRIES),40) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0) -older '$(OLDER)'
escapes: ## End commands whose processes try to escape, as root: make escapes TRIES=200 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario escapes -tries $(or $(TRIES),200) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)

# go test passes if no test has the name.
.PHONY: failovers
failovers: ## Fail servers over while workers work: make failovers TIMES=24 STORE=postgres, mysql, redis or etcd
	@cd store/$(or $(STORE),postgres) && $(GO) test -list '^TestFailovers$$' . | grep -qx TestFailovers || { echo 'store/$(or $(STORE),postgres) has no TestFailovers' >&2; exit 1; }
	cd store/$(or $(STORE),postgres) && SLOTLEASE_FAILOVERS='$(or $(TIMES),24)' REQUIRE_STORES=postgres,mariadb,redis,etcd $(GO) test -count=1 -timeout 2h -parallel 6 -v -run '^TestFailovers$$' .

# SLOTLEASE_CRON is how much the tests of leasectl cron show, where they are to show more than beside other tests.
.PHONY: cron cron-debian cron-figures
cron: ## Kill machines with all their processes while leasectl cron runs jobs, and reload and trigger twice as often: make cron TRIES=100 STORE=sqlite, mongo or postgres
	SLOTLEASE_CRON=$(or $(STORE),sqlite),$(or $(TRIES),100),$(or $(JOBS),100) REQUIRE_STORES=$(STORE) $(GO) test -count=1 -p 1 -parallel 1 -timeout 1h -v -run 'MachinesThatAreKilled|TestReloadsTouch|TestEachTrigger' ./cmd/leasectl/app
cron-debian: ## Compare leasectl cron with Debian's cron on the crontabs of packages, as root, with its faketime: two hours in two minutes
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && chmod 755 "$$dir" && mkdir "$$dir/all" && (cd "$$dir" && apt-get download -qq $(CRONTABS) && for each in *.deb; do dpkg-deb -x "$$each" all || exit 1; done) && \
	  SLOTLEASE_DEBIAN="$$dir/all" $(GO) test -count=1 -v -run TheJobsOfDebian ./cmd/leasectl/app
cron-figures: ## Measure a process with 100 jobs on each store, in 8 minutes, and beside supercronic: make cron-figures SUPERCRONIC=/path/supercronic
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && $(GO) build -ldflags='-s -w' -o "$$dir/leasectl" ./cmd/leasectl && \
	  SLOTLEASE_LEASECTL="$$dir/leasectl" SLOTLEASE_SUPERCRONIC='$(SUPERCRONIC)' REQUIRE_STORES=mongo,postgres $(GO) test -count=1 -timeout 1h -v -run FiguresOfAProcess ./cmd/leasectl/app

# Packages with a file in cron.d whose users every machine has.
CRONTABS = cron cron-daemon-common anacron certbot e2fsprogs john mdadm munin-node ntpsec php-common sysstat

# The commit is the last one whose jobs end with their slots, and whose workers wait for a boundary.
OLDER_COMMIT ?= 4f5de78c

.PHONY: older
older: ## Let workers of this version and of an older one work side by side, if the history is here: make older TRIES=20 STORE=sqlite
	@if ! git cat-file -e '$(OLDER_COMMIT)^{commit}' 2>/dev/null; then echo 'SKIPPED: this checkout has no commit $(OLDER_COMMIT): use git fetch --unshallow'; else \
	  dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/src" && git archive '$(OLDER_COMMIT)' | tar -x -C "$$dir/src" && \
	  (cd "$$dir/src" && $(GO) build -buildvcs=false -o "$$dir/older" ./cmd/leasectl) && \
	  for each in rolling done overrun; do $(MAKE) $$each OLDER="$$dir/older" STORE=$(or $(STORE),sqlite) TRIES=$(or $(TRIES),20) || exit 1; done; fi

.PHONY: late
late: ## Stop holders past their windows, and see their late writes refused by SQLite, PostgreSQL and MariaDB: make late TRIES=50
	cd internal/fencetest && FENCETEST_TRIES=$(or $(TRIES),50) $(GO) test -count=1 -timeout 1h -v -run LateWrite .

.PHONY: alerts
alerts: ## Let a real Prometheus scrape workers, kill the holder, and see the alerts (needs Debian's prometheus)
	cd internal/promtest && REQUIRE_PROMETHEUS=1 $(GO) test -count=1 -v .

.PHONY: page
page: ## Show the page of leasectl serve in a real browser (needs Debian's chromium, and Node): SHOTS=DIR keeps pictures
	REQUIRE_BROWSER=1 REQUIRE_STORES=postgres,mongo $(GO) test -count=1 -v ./testutil/internal/pagetest

.PHONY: chaos
chaos: ## Strike real processes and stores with faults: make chaos DURATION=60s STORE=sqlite SEED=1, or mongo, postgres, mysql, redis, s3, azblob, cosmos, etcd, kubernetes (after make kubernetes)
	cd internal/chaos && KUBE_APISERVER='$(KUBE_APISERVER)' $(GO) run . -duration $(or $(DURATION),60s) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)

.PHONY: fuzz
fuzz: ## Run each fuzz target: make fuzz FUZZ=30s, or a count such as FUZZ=10000000
	$(GO) run ./internal/figures/fuzz -n $(or $(FUZZ),30s)

# With SLOTLEASE_FIGURES=DIR (an absolute path), each proof saves its figures for make figures.
.PHONY: soak
soak: ## Run the long proofs in sequence, for hours: sim, variants, races, model, chaos, takeover, rolling, done, overrun, older, escapes, late, linear, fuzz
	$(MAKE) sim SEEDS=$(or $(SEEDS),10000) HOURS=$(or $(HOURS),24)
	$(MAKE) regimes SEEDS=$(or $(SEEDS),20000)
	$(MAKE) variants
	SLOTLEASE_MOVE_SEEDS=$(or $(SEEDS),12000) $(GO) test -run NoTwoHoldWhatever -timeout 2h ./workerlease/move
	SLOTLEASE_SIM_SEEDS=100 SLOTLEASE_SUITES=race $(MAKE) race
	SLOTLEASE_RACE_ROUNDS=1000 $(GO) test -count=1 -timeout 1h ./store/...
	$(MAKE) model
	$(foreach s,sqlite mongo,$(MAKE) chaos STORE=$s DURATION=30m && $(MAKE) takeover STORE=$s TRIES=100 && $(MAKE) rolling STORE=$s TRIES=20 && $(MAKE) done STORE=$s TRIES=200 && $(MAKE) overrun STORE=$s TRIES=40 && $(MAKE) older STORE=$s && $(MAKE) escapes STORE=$s TRIES=200 &&) true
	$(MAKE) late
	$(MAKE) linear
	$(MAKE) fuzz FUZZ=$(or $(FUZZ),2m)

.PHONY: figures
figures: ## Write the figures that the proofs saved into docs/proofs.md: make figures FIGURES=figures
	$(GO) run ./internal/figures/table $(or $(FIGURES),figures) docs/proofs.md

.PHONY: bench
bench: ## Run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./slots ./priority ./store/... ./workerlease/...

.PHONY: long
long: ## Measure leasectl on a long ledger of each store: make long RECORDS=100000
	SLOTLEASE_LONG=$(or $(RECORDS),100000) $(GO) test -count=1 -timeout 1h -v -run OnALongLedgerOfEachRegisteredStore ./cmd/leasectl/app
	cd store/etcd && SLOTLEASE_LONG=$(or $(RECORDS),100000) $(GO) test -run '^$$' -bench Long -benchtime 5x .

.PHONY: bench-types bench-peers
bench-types: ## Measure many worker types on one client: make bench-types TYPES=10000 STORE=memory
	$(GO) run ./internal/bench --types $(or $(TYPES),10000) --store $(or $(STORE),memory)
bench-peers: ## Compare with etcd, client-go and Redis, in 8 min: make bench-peers ROUNDS=3 BOUNDS=3s for 1 min
	cd internal/bench/peers && $(GO) run . -rounds $(or $(ROUNDS),20) $(addprefix -bounds ,$(BOUNDS))

.PHONY: demo
demo: ## Show the main use in 35 seconds
	$(GO) run ./cmd/leasectl demo

# It builds with the project's Go, and so does its nfpm; later ones don't.
GORELEASER = github.com/goreleaser/goreleaser/v2@v2.16.0

.PHONY: release-snapshot installed reproducible
release-snapshot: ## Make what a release has, archives and packages of each system, in dist: nothing is sent
	$(GO) run $(GORELEASER) release --snapshot --clean
installed: ## Install that package on two machines with nothing else, as root, and let them take turns (needs dpkg)
	.ci/installed dist/leasectl_*_linux_amd64.deb
reproducible: ## Build the released program in two folders, with empty caches, and compare the bytes
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && for n in one another; do \
	  mkdir "$$dir/$$n" && git ls-files -z | xargs -0 cp --parents -t "$$dir/$$n" && \
	  (cd "$$dir/$$n/cmd/full" && GOCACHE="$$dir/$$n.cache" CGO_ENABLED=0 $(GO) build -tags grpcnotrace -trimpath -buildvcs=false -ldflags='-s -w' -o "$$dir/$$n.program" ./leasectl) || exit 1; \
	  done && cmp "$$dir/one.program" "$$dir/another.program" && sha256sum "$$dir"/*.program

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt ./...

.PHONY: lint
lint: ## Lint, with the checks of go vet, and check that go.mod is tidy, and that no more tests reach the real clock
	$(GO) run ./internal/suites/realclock
	$(LINT) run --build-tags $(subst -tags ,,$(UNTESTED))
	@for m in $(MODULES); do (cd $$m && $(LINT) run ./... && $(GO) mod tidy -diff) || exit 1; done

.PHONY: portable
portable: ## Check the types of everything for macOS, Windows, and processors of 32 bits
	cd internal/portable && $(GO) run . ../..

.PHONY: cover
cover: ## Measure test coverage by function
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./... && $(GO) tool cover -func=cover.out | tail -1
