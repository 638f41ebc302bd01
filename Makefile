GO      ?= go
MODULES  = . testutil/mongopeer/server internal/chaos examples/gocron
LINT     = golangci-lint
# The packages whose tests take longest begin first, so that none of them is left
# to run alone at the end.
LONGEST  = ./testutil/sim ./cmd/leasectl ./store/sqlite ./store/cosmos

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: fmt lint test ## What to run before a commit

.PHONY: test
test: ## All tests; starts its own peers (Cosmos DB: with Node)
	$(GO) test ./...
	cd examples/gocron && $(GO) test ./...

.PHONY: race
race: ## All tests of Go code with the race detector, peers required
	REQUIRE_STORES=$${REQUIRE_STORES:-mongo} $(GO) test -race -shuffle=on $(LONGEST) $$($(GO) list ./... | grep -v /internal/model)

.PHONY: sim
sim: ## A long simulation: make sim SEEDS=2000 HOURS=6
	SLOTLEASE_SIM_SEEDS=$(or $(SEEDS),2000) $(GO) test -run TestNoTwoHoldersWorkAtOnce -timeout 12h -v ./testutil/sim -sim.hours $(or $(HOURS),6)

.PHONY: variants
variants: ## Engines that are broken on purpose, which the simulation must catch
	$(GO) test -run TestSimulationCatchesEveryBrokenVariant -timeout 1h -v ./workerlease

.PHONY: linear
linear: ## Check histories of all stores for linearizability, with broken connections too
	REQUIRE_STORES=mongo $(GO) test -count=1 -timeout 1h -v -run Linearizable ./internal/linear ./testutil/sim
	cd internal/chaos && REQUIRE_STORES=mongo $(GO) test -count=1 -timeout 1h -v ./linear

.PHONY: model
model: ## Search the model of the ledger exhaustively (spin, gcc; 20 minutes, 5 GB for each core)
	SLOTLEASE_MODEL=long REQUIRE_SPIN=1 $(GO) test -count=1 -v -timeout 3h ./internal/model

.PHONY: takeover rolling done
takeover: ## Holders that die, as real processes: make takeover TRIES=100 STORE=sqlite SEED=1
	cd internal/chaos && $(GO) run . -scenario takeover -tries $(or $(TRIES),100) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)
rolling: ## Workers that are started anew in turn: make rolling TRIES=20 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario rolling -tries $(or $(TRIES),20) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)
done: ## Jobs done once for each slot, under kills: make done TRIES=200 STORE=sqlite
	cd internal/chaos && $(GO) run . -scenario done -tries $(or $(TRIES),200) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)

.PHONY: chaos
chaos: ## Faults on real processes: make chaos DURATION=60s STORE=sqlite SEED=1
	cd internal/chaos && $(GO) run . -duration $(or $(DURATION),60s) -store $(or $(STORE),sqlite) -seed $(or $(SEED),0)

.PHONY: fuzz
fuzz: ## Each fuzz target: make fuzz FUZZ=30s, or a count such as FUZZ=10000000
	$(GO) run ./internal/figures/fuzz -n $(or $(FUZZ),30s)

.PHONY: figures
figures: ## Write what the proofs saved in FIGURES into the README
	$(GO) run ./internal/figures/readme $(or $(FIGURES),figures) README.md

.PHONY: bench
bench: ## Benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./slots ./priority ./store/... ./workerlease/...

.PHONY: demo
demo: ## The main job in 35 seconds
	$(GO) run ./cmd/leasectl demo

.PHONY: fmt
fmt: ## Format
	$(LINT) fmt ./...

.PHONY: lint
lint: ## Lint, vet, and check that go.mod is tidy
	$(GO) vet ./...
	@for m in $(MODULES); do (cd $$m && $(LINT) run ./... && $(GO) mod tidy -diff) || exit 1; done

.PHONY: cover
cover: ## Coverage by function
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./... && $(GO) tool cover -func=cover.out | tail -1
