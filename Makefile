# One door for everything a contributor runs. `make` alone prints what there is.
.DEFAULT_GOAL := help
.PHONY: help setup build demo bench test test-long fuzz coverage lint fmt generate

GO ?= go
ARGS ?=
FUZZTIME ?= 30s
GO_FILES = $$(find . -name '*.go' -not -path './.*')

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the tests need beside Go: PostgreSQL 15 or newer, pgTAP, plpgsql_check, a C compiler
	@sh scripts/setup.sh

build: ## Build the programs into bin/
	$(GO) build -o bin/ ./cmd/...

demo: build ## The five-minute run; ARGS="--once" ends it after the criteria
	@sh scripts/setup.sh || echo "going on: of these the demo needs PostgreSQL alone" >&2
	bin/autopost demo $(ARGS)

bench: build ## The goals of speed against bare SQL and River; ARGS="--quick", "--only P3,P4", "--json FILE"
	bin/autopost bench $(ARGS)

test: setup ## Formatting, vet and all tests with the race detector
	@unformatted=$$(gofmt -l $(GO_FILES)); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) test -race ./...

test-long: setup ## The proofs at their full size, hours; AUTOPOST_LONG=30m is how long each may go on. Needs PgBouncer too
	AUTOPOST_LONG=$${AUTOPOST_LONG:-1} $(GO) test -timeout 24h -v ./test/proof/... ./test/crash $(ARGS)

fuzz: ## Every fuzz target, one after the other, each for FUZZTIME (30s); what it finds becomes a seed in testdata
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file target; do \
		target=$${target#func }; echo "$$target in $$(dirname $$file)"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; done

coverage: setup ## Which statements and branches of the SQL functions the contracts reach, and which they do not
	$(GO) test -count=1 -v -run '^TestCoverage$$' ./db

lint: ## golangci-lint, pinned in tools/go.mod (the first run builds it, about two minutes)
	$(GO) tool -modfile=tools/go.mod golangci-lint run $(ARGS)

fmt: ## Format the Go code
	gofmt -w $(GO_FILES)

generate: setup ## Write db/schema.sql and docs/reference/ anew from the migrations and the configuration
	$(GO) run ./scripts/generate
