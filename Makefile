GO      ?= go
MODULES  = . testutil/mongopeer/server
LINT     = golangci-lint

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check
check: fmt lint test ## What to run before a commit

.PHONY: test
test: ## All tests; starts its own MongoDB peer
	$(GO) test ./...

.PHONY: race
race: ## All tests with the race detector, peers required
	REQUIRE_STORES=mongo $(GO) test -race -shuffle=on ./...

.PHONY: sim
sim: ## A long simulation: make sim SEEDS=5000
	SLOTLEASE_SIM_SEEDS=$(or $(SEEDS),2000) $(GO) test -run TestSimulation -timeout 3h -v ./workerlease

.PHONY: fuzz
fuzz: ## Each fuzz target for FUZZTIME (default 30s)
	@for p in $$($(GO) list ./...); do for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
		$(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(or $(FUZZTIME),30s) -fuzzminimizetime 10x $$p || exit 1; done; done

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
	$(LINT) run ./...
	@for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff) || exit 1; done

.PHONY: cover
cover: ## Coverage by function
	$(GO) test -coverprofile=cover.out -coverpkg=./... ./... && $(GO) tool cover -func=cover.out | tail -1
