# Two commands do everything: `make demo` and `make test`. Both build what they need and keep it in .bin.

BIN     := $(CURDIR)/.bin
TOOLS   := $(BIN)/tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X drydock/starter.Version=$(VERSION) -X drydock/worker.Version=$(VERSION)

TEMPORAL_VERSION      := v1.5.1
GOLANGCI_VERSION      := v2.15.0
WORKFLOWCHECK_VERSION := v0.6.0
KUBERNETES_VERSION    := v1.36.3

# One set of flags everywhere, so that the build cache serves binaries, tests and images alike.
export DRYDOCK_BIN := $(BIN)
export GOFLAGS     := $(GOFLAGS) -trimpath
STATIC_GO          := CGO_ENABLED=0 go

.DEFAULT_GOAL := help
.PHONY: help demo demo-stop test build lint unit e2e devcluster-test bench images clean drydock

help: ## show the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: build ## the main job, end to end, on a cluster of this machine (KEEP=1 leaves it running)
	@$(STATIC_GO) run ./deploy/demo $(if $(KEEP),--keep)

demo-stop: ## stop what `make demo KEEP=1` left running
	@$(STATIC_GO) run ./deploy/demo --stop

test: build lint unit e2e devcluster-test ## all tests
	@echo "== all tests passed"

build: drydock $(BIN)/devcluster $(BIN)/temporal ## drydock, drydock-worker, devcluster and temporal, into .bin

drydock:
	@echo "== building drydock and drydock-worker ($(VERSION))"
	@mkdir -p $(BIN)
	@$(STATIC_GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./starter/drydock ./worker/drydock-worker

DEVCLUSTER_SOURCES := $(shell find deploy/devcluster -type f -not -name '*_test.go')
$(BIN)/devcluster: $(DEVCLUSTER_SOURCES)
	@echo "== building devcluster: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok in one binary"
	@echo "   (about five minutes and a few hundred megabytes of modules the first time, seconds afterwards)"
	@mkdir -p $(BIN)
	@cd deploy/devcluster && go build \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)" -o $@ .

$(BIN)/temporal: $(BIN)/.temporal-$(TEMPORAL_VERSION)
$(BIN)/.temporal-$(TEMPORAL_VERSION):
	@echo "== building the Temporal command line and dev server $(TEMPORAL_VERSION) (about three minutes the first time)"
	@mkdir -p $(BIN)
	@cd / && GOBIN=$(BIN) $(STATIC_GO) install -ldflags "-s -w" github.com/temporalio/cli/cmd/temporal@$(TEMPORAL_VERSION)
	@touch $@ $(BIN)/temporal

$(TOOLS)/.golangci-$(GOLANGCI_VERSION):
	@echo "== building golangci-lint $(GOLANGCI_VERSION) (a few minutes the first time)"
	@cd / && GOBIN=$(TOOLS) go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@touch $@

$(TOOLS)/.workflowcheck-$(WORKFLOWCHECK_VERSION):
	@echo "== building workflowcheck $(WORKFLOWCHECK_VERSION)"
	@cd / && GOBIN=$(TOOLS) go install go.temporal.io/sdk/contrib/tools/workflowcheck@$(WORKFLOWCHECK_VERSION)
	@touch $@

lint: $(TOOLS)/.golangci-$(GOLANGCI_VERSION) $(TOOLS)/.workflowcheck-$(WORKFLOWCHECK_VERSION) ## golangci-lint, and workflowcheck for determinism
	@echo "== golangci-lint"
	@$(TOOLS)/golangci-lint run ./...
	@echo "== workflowcheck"
	@$(TOOLS)/workflowcheck -test=false -config workflowcheck.yaml ./workflows

unit: ## everything but the end-to-end tests
	@echo "== unit tests, with the race detector where cgo is at hand"
	@go test $(if $(shell command -v gcc),-race) -timeout 10m $$(go list ./... | grep -v -e /e2e)

e2e: drydock $(BIN)/devcluster $(BIN)/temporal ## end to end: real control plane, real Temporal server, real binaries
	@echo "== end-to-end tests (a few minutes)"
	@$(STATIC_GO) test -timeout 20m -count 1 ./e2e/...

devcluster-test: $(BIN)/devcluster ## the tests of devcluster, a module of its own
	@echo "== tests of devcluster"
	@cd deploy/devcluster && go test -timeout 15m ./...

bench: build ## the benchmarks: a table, and bench.json (RUN=regexp chooses by name)
	@$(STATIC_GO) run ./bench $(if $(RUN),-run '$(RUN)')

images: drydock $(BIN)/temporal ## container images FROM scratch, out of binaries built here
	@deploy/docker/build.sh $(VERSION)

clean: ## remove what was built
	rm -rf $(BIN) .dev
