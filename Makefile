# All commands of a contributor. `make` without arguments lists them.
.DEFAULT_GOAL := help
.PHONY: help setup build demo bench test test-long test-n8n fuzz coverage lint lint-api fmt generate diagram notices sbom vuln

GO ?= go
ARGS ?=
FUZZTIME ?= 30s
# The folder of the n8n of make test-n8n. It is kept between runs and shared by checkouts.
N8N_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/autopost-test/n8n
GO_FILES = $$(find . -name '*.go' -not -path './.*')

# The race detector multiplies processor time by five, so it runs where goroutines of one process share data. The
# other packages run SQL, read files, start the program, which is built without it, or use no goroutine (PLAIN). Of an
# adapter, the conformance case with many calls at once runs under it. The longest packages come first.
ADAPTERS = ./internal/adapter/maxmessenger ./internal/adapter/telegram ./internal/adapter/twitter ./internal/adapter/youtube
PLAIN = ./internal/adapter/webhook ./internal/config ./internal/configfile ./internal/ingest/botupdates ./internal/ingest/push \
	./internal/ingest/pull/externaldb ./internal/ingest/pull/item ./internal/ingest/pull/jsonapi ./internal/ingest/pull/opml \
	./internal/ingest/pull/sqlquery ./internal/notify ./internal/problem ./internal/recurrence/... ./internal/secret \
	./internal/table ./internal/testing/disktest ./internal/testing/posttest
NO_RACE = ./test/e2e ./test/crash ./test/api ./test/pages ./test/readme ./db ./test/proof/races ./test/verify $(ADAPTERS) ./cmd/... \
	./internal/bench ./internal/cli ./internal/localpg ./internal/pg/schema ./scripts/... ./test/arch \
	./test/proof/conformance ./test/proof/fuzz ./test/proof/model ./test/proof/mutation ./test/proof/properties ./test/proof/recurrence $(PLAIN)
RACE = $$($(GO) list ./... | grep -vxF "$$($(GO) list $(NO_RACE))")
# Most tests wait for leases, slots and processes: two packages share two processors. The limit is for
# a machine that is busy with other work; on a quiet one no package needs five minutes. make lint runs vet.
TEST_FLAGS = -vet=off -p 2 -parallel 4 -timeout 60m
# Packages under the race detector use little of the processors: most of their time is compiling and waiting. Without
# optimization they compile in half the time.
RACE_FLAGS = -vet=off -p 4 -parallel 4 -timeout 60m -race '-gcflags=all=-N -l'
# The folder of the programs that scripts/test-programs.sh builds once for all packages.
export AUTOPOST_TEST_BIN = $(CURDIR)/bin/test
# All targets compile with the same flags, so each package is compiled once, also for several checkouts. The programs
# are static and without paths of this machine. The race detector alone needs cgo.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
export CGO_ENABLED = 0

help: ## Print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install the tools of the tests: PostgreSQL 15 or newer, pgTAP, plpgsql_check, PgBouncer, Chromium, C compiler, S3 server
	@sh scripts/setup.sh
	@GO="$(GO)" sh scripts/test-programs.sh s3server

build: ## Build the programs into bin/: static, and without paths of this machine
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/...

demo: build ## The five-minute run; ARGS="--once" ends it after the criteria
	@sh scripts/setup.sh || echo "going on: of these the demo needs PostgreSQL alone" >&2
	bin/autopost demo $(ARGS)

bench: ## Measure the goals of speed against bare SQL and River; ARGS="--quick", "--only P3,P4", "--json FILE"
	$(GO) build -tags peers -o bin/autopost-bench ./cmd/autopost
	bin/autopost-bench bench $(ARGS)

.PHONY: test-programs
test-programs: setup
	@GO="$(GO)" sh scripts/test-programs.sh engine

test: test-programs ## Check formatting and run all tests; proofs run a sample (about a quarter of an hour on two processors)
	@unformatted=$$(gofmt -l $(GO_FILES)); \
	if [ -n "$$unformatted" ]; then echo "not formatted (make fmt):"; echo "$$unformatted"; exit 1; fi
	$(GO) test $(TEST_FLAGS) $(NO_RACE)
	CGO_ENABLED=1 $(GO) test $(RACE_FLAGS) $(RACE)
	CGO_ENABLED=1 $(GO) test $(RACE_FLAGS) -tags peers -run '^TestConformance$$/^ServesManyDeliveriesAtTheSameTime$$|^TestPeer' $(ADAPTERS) ./internal/bench

.PHONY: test-pages
test-pages: test-programs ## Open every page in Chromium: both widths, both themes, both languages; SHOTS=FOLDER keeps pictures
	AUTOPOST_PAGES=all AUTOPOST_SHOTS=$(SHOTS) $(GO) test -count=1 -timeout 60m -tags pages ./test/pages

test-long: test-programs ## Run the proofs at full size, for hours; AUTOPOST_LONG=30m bounds each proof
	AUTOPOST_LONG=$${AUTOPOST_LONG:-1} $(GO) test -timeout 24h -v ./test/proof/... ./test/crash/... ./test/e2e/... \
		./internal/adapter/... ./internal/bench ./db $(ARGS)

test-n8n: test-programs ## Run the workflows in the pinned n8n (2.2 GB in N8N_CACHE, needs npm), for half an hour; ARGS="-run NAME"
	sh test/n8n/install.sh "$(N8N_CACHE)"
	AUTOPOST_N8N="$(N8N_CACHE)" $(GO) test -tags n8n -count=1 -timeout 90m -v ./test/n8n $(ARGS)

.PHONY: test-citus
test-citus: ## Run the program on a real Citus cluster of its own (CITUS_PREFIX or ../shared/citus), for twenty minutes
	@GO="$(GO)" sh test/citus/run.sh $(ARGS)

fuzz: ## Run every fuzz target for FUZZTIME (30s); each failure becomes a seed in testdata
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sort | while IFS=: read -r file target; do \
		target=$${target#func }; echo "$$target in $$(dirname $$file)"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname $$file)" || exit 1; done

coverage: setup ## List the statements and branches of the SQL functions that the contracts reach and miss
	$(GO) test -count=1 -v -run '^TestContracts$$' ./db

lint: ## golangci-lint with vet, pinned in tools/go.mod (the first run builds it, about two minutes)
	$(GO) tool -modfile=tools/go.mod golangci-lint run $(ARGS)

lint-api: ## Lint the OpenAPI document and compile generated clients (TypeScript, Go); needs npm
	@GO="$(GO)" sh scripts/lint-api.sh

fmt: ## Format the Go code
	gofmt -w $(GO_FILES)

notices: ## Write THIRD_PARTY_NOTICES: the modules of the programs with their licenses
	$(GO) run ./scripts/dependencies notices

sbom: build ## Write bin/autopost.cdx.json, the bill of materials (CycloneDX)
	$(GO) run ./scripts/dependencies sbom bin/autopost > bin/autopost.cdx.json

vuln: ## Search the dependencies for known vulnerabilities; needs the network, as the database is at vuln.go.dev
	$(GO) tool -modfile=tools/govulncheck/go.mod govulncheck ./... || { code=$$?; \
	[ $$code -eq 3 ] || echo "vuln: the scan did not run; if vuln.go.dev cannot be reached, set GOVULNDB to a mirror or a folder (file://)" >&2; exit $$code; }

generate: setup ## Write db/schema.sql, docs/reference, the invariants of ARCHITECTURE.md and the Go code of the pages
	$(GO) tool -modfile=tools/templ/go.mod templ generate -path internal/web -log-level error
	$(GO) run ./scripts/generate

diagram: ## Draw docs/architecture.png from docs/architecture.dot; needs Graphviz
	$(GO) run ./scripts/diagram
