GO      ?= go
MODULES  = . store/etcd store/kubernetes testutil/mongopeer/server internal/chaos internal/fencetest internal/promtest internal/portable examples/gocron
LINT     = golangci-lint
# What has the build tag of the store of SQL Server, which was never run on one.
UNTESTED = -tags sqlserver ./store/sqlserver ./cmd/leasectl/internal/storeuri
# Packages with the longest tests start first, so that none of them runs alone at the
# end.
LONGEST  = ./workerlease ./cmd/leasectl/app ./testutil/sim ./store/cosmos ./cmd/leasectl/internal/guard ./store/mongo

# Packages without goroutines, or whose tests run other programs only, or leasectl, which its
# own tests run: the race detector has nothing to find there.
SINGLE   = /(testutil/((postgres|mysql|redis|etcd|s3|azurite|kube)peer|leasectltest)|slots|priority|workerlease/(history|verify|internal/gap|internal/machine|internal/timeline)|internal/(audit|docs|fuzzed|model|recordtest))$$|/examples|/internal/(figures|estimate)

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: fmt lint test ## Format, lint and test: run it before a commit

.PHONY: test
test: ## Run all tests; they start their own servers (Cosmos DB needs Node)
	$(GO) test ./...
	$(GO) test $(UNTESTED)
	cd store/etcd && $(GO) test ./...
	cd store/kubernetes && $(GO) test ./...
	cd examples/gocron && $(GO) test ./...

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
	REQUIRE_STORES=$${REQUIRE_STORES:-mongo} $(GO) test -race -short -vet=off $(TRUSTED) -shuffle=on -timeout 1h $(LONGEST) $$($(GO) list ./... | grep -vE '$(SINGLE)')
	$(GO) test -race -vet=off $(TRUSTED) $(UNTESTED)

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
	cd internal/chaos && REQUIRE_STORES=mongo $(GO) test -count=1 -timeout 1h -v ./linear

.PHONY: mongodb
mongodb: ## Run the suite on a real replica set and cluster: make mongodb MONGOD=/path/mongod MONGOS=/path/mongos
	@test -n '$(MONGOD)' || echo 'MONGOD names no program: nothing is shown on real servers'
	@test -n '$(MONGOS)' || echo 'MONGOS names no program: nothing is shown on a sharded cluster'
	MONGOD='$(MONGOD)' MONGOS='$(MONGOS)' $(GO) test -count=1 -timeout 1h -v -run 'OnAReal|RealServers' ./testutil/mongopeer ./store/mongo

# The program is built once, in some minutes, and kept in the user's cache.
KUBE_APISERVER ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/slotlease/kube-apiserver-1.36.3

.PHONY: kubernetes
kubernetes: $(KUBE_APISERVER) ## Build a real API server of Kubernetes, and run the suites on it (needs Debian's etcd-server; 10 minutes the first time)
	KUBE_APISERVER='$(KUBE_APISERVER)' REQUIRE_STORES=etcd,kubernetes $(GO) test -count=1 -v ./testutil/kubepeer
	cd store/kubernetes && KUBE_APISERVER='$(KUBE_APISERVER)' REQUIRE_STORES=etcd,kubernetes $(GO) test -count=1 -timeout 30m -v ./...
$(KUBE_APISERVER):
	cd testutil/kubepeer/server && GOFLAGS= CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags='-s -w' -o '$@' .

.PHONY: model
model: ## Search the model exhaustively (needs spin and gcc; some minutes, 1 GB per core)
	SLOTLEASE_MODEL=long REQUIRE_SPIN=1 $(GO) test -count=1 -v -timeout 3h ./internal/model

.PHONY: takeover rolling done escapes
takeover: ## Kill holders, as real processes: make takeover TRIES=100 STORE=sqlite SEED=1
	cd internal/chaos && $(GO) run . -scenario takeover -tries $(or $(TRIES),100) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)
rolling: ## Restart the workers one after the other: make rolling TRIES=20 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario rolling -tries $(or $(TRIES),20) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)
done: ## Kill workers that do a job once per slot: make done TRIES=200 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario done -tries $(or $(TRIES),200) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)
escapes: ## End commands whose processes try to escape, as root: make escapes TRIES=200 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario escapes -tries $(or $(TRIES),200) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)

.PHONY: late
late: ## Stop holders past their windows, and see their late writes refused by SQLite, PostgreSQL and MariaDB: make late TRIES=50
	cd internal/fencetest && FENCETEST_TRIES=$(or $(TRIES),50) $(GO) test -count=1 -timeout 1h -v -run LateWrite .

.PHONY: alerts
alerts: ## Let a real Prometheus scrape workers, kill the holder, and see the alerts (needs Debian's prometheus)
	cd internal/promtest && REQUIRE_PROMETHEUS=1 $(GO) test -count=1 -v .

.PHONY: chaos
chaos: ## Strike real processes and stores with faults: make chaos DURATION=60s STORE=sqlite SEED=1, or mongo, postgres, mysql, redis, s3, azblob, cosmos, etcd, kubernetes (after make kubernetes)
	cd internal/chaos && KUBE_APISERVER='$(KUBE_APISERVER)' $(GO) run . -duration $(or $(DURATION),60s) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)

.PHONY: fuzz
fuzz: ## Run each fuzz target: make fuzz FUZZ=30s, or a count such as FUZZ=10000000
	$(GO) run ./internal/figures/fuzz -n $(or $(FUZZ),30s)

# With SLOTLEASE_FIGURES=DIR (an absolute path), each proof saves its figures for make figures.
.PHONY: soak
soak: ## Run the long proofs in sequence, for hours: sim, variants, races, model, chaos, takeover, rolling, done, escapes, late, linear, fuzz
	$(MAKE) sim SEEDS=$(or $(SEEDS),10000) HOURS=$(or $(HOURS),24)
	$(MAKE) regimes SEEDS=$(or $(SEEDS),20000)
	$(MAKE) variants
	SLOTLEASE_SIM_SEEDS=100 SLOTLEASE_SUITES=race $(MAKE) race
	SLOTLEASE_RACE_ROUNDS=1000 $(GO) test -count=1 -timeout 1h ./store/...
	$(MAKE) model
	$(foreach s,sqlite mongo,$(MAKE) chaos STORE=$s DURATION=30m && $(MAKE) takeover STORE=$s TRIES=100 && $(MAKE) rolling STORE=$s TRIES=20 && $(MAKE) done STORE=$s TRIES=200 && $(MAKE) escapes STORE=$s TRIES=200 &&) true
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

.PHONY: bench-types bench-handover bench-peers
bench-types: ## Measure many worker types on one client: make bench-types TYPES=10000 STORE=memory
	$(GO) run ./internal/bench types --types $(or $(TYPES),10000) --store $(or $(STORE),memory)
bench-handover: ## Measure clean hand-overs: make bench-handover STORE=sqlite
	$(GO) run ./internal/bench handover --slot 5s --slots 20 --store $(or $(STORE),sqlite)
bench-peers: ## Compare with etcd, client-go, Redis and gocron, in 10 min: make bench-peers ROUNDS=3 BOUNDS=3s for 2 min
	cd internal/bench/peers && $(GO) run . -rounds $(or $(ROUNDS),20) $(addprefix -bounds ,$(BOUNDS))

.PHONY: demo
demo: ## Show the main use in 35 seconds
	$(GO) run ./cmd/leasectl demo

.PHONY: fmt
fmt: ## Format the code
	$(LINT) fmt ./...

.PHONY: lint
lint: ## Lint, with the checks of go vet, and check that go.mod is tidy
	$(LINT) run --build-tags $(subst -tags ,,$(UNTESTED))
	@for m in $(MODULES); do (cd $$m && $(LINT) run ./... && $(GO) mod tidy -diff) || exit 1; done

.PHONY: portable
portable: ## Check the types of everything for macOS, Windows, and processors of 32 bits
	cd internal/portable && $(GO) run . ../..

.PHONY: cover
cover: ## Measure test coverage by function
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./... && $(GO) tool cover -func=cover.out | tail -1
