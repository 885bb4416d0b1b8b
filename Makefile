# Two commands do everything: `make demo` and `make test`. Both build what they need and keep it in .bin.

BIN     := $(CURDIR)/.bin
TOOLS   := $(BIN)/tools
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -X drydock.dev/drydock/starter.Version=$(VERSION) -X drydock.dev/drydock/worker.Version=$(VERSION) \
	-X drydock.dev/drydock/bridge.Version=$(VERSION)

KUBERNETES_VERSION := v1.36.1

# One set of flags everywhere, so that the build cache serves binaries, tests and images alike.
export DRYDOCK_BIN := $(BIN)
export GOFLAGS     := $(GOFLAGS) -trimpath
STATIC_GO          := CGO_ENABLED=0 go

.DEFAULT_GOAL := help
.PHONY: chromium site help demo demo-stop up cluster-answers down test test-all test-rest test-site test-chart test-monitoring build lint vuln unit race e2e e2e-short e2e-slow record devcluster-test devtemporal-test frozen bench fuzz chaos chaos-short soak rolling unavailable objects reproducible images trial-images push test-compose test-habits manifests chart clean drydock

help: ## show the targets
	@grep -hE '^[a-z][a-z-]*:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: build ## the main job, end to end, on a cluster of this machine (KEEP=1 leaves it running)
	@cd lab && $(STATIC_GO) run ./demo $(if $(KEEP),--keep)

demo-stop: ## stop what `make demo KEEP=1` left running
	@cd lab && $(STATIC_GO) run ./demo --stop

up: cluster-answers drydock $(BIN)/devtemporal ## Drydock on this machine for a cluster of yours (CONTEXT=name, YES=1, APPLY_RBAC=1, BRIDGE=1, UP_DIR=folder)
	@$(STATIC_GO) run ./deploy/up

# A kubeconfig that is missing is said before the long build, not after it.
cluster-answers:
	@test -e $(BIN)/devtemporal || $(STATIC_GO) run ./deploy/up --look

down: ## stop what make up started; everything is kept
	@$(STATIC_GO) run ./deploy/up --down

test: ## what a change has to pass first: lint, unit tests, replay, and each capability end to end
	@echo "== 1/4 build"; $(MAKE) --no-print-directory build
	@echo "== 2/4 lint"; $(MAKE) --no-print-directory lint
	@echo "== 3/4 unit tests and replay"; $(MAKE) --no-print-directory unit
	@echo "== 4/4 end-to-end tests"; $(MAKE) --no-print-directory e2e-short
	@echo "== tests passed; make test-all runs those that take long too"

test-all: test test-rest test-site ## all tests
	@echo "== all tests passed"

test-rest: race e2e-slow chaos-short devcluster-test devtemporal-test ## what make test leaves out, but what is around the programs

test-site: test-chart test-monitoring test-compose test-habits ## what is around the programs: the chart, alerts and dashboards, compose, what a release reads
	@echo "== all tests of the site passed"

build: drydock $(BIN)/devcluster $(BIN)/devtemporal ## drydock, drydock-worker, drydock-bridge, devcluster and devtemporal, into .bin

drydock:
	@echo "== building drydock, drydock-worker and drydock-bridge ($(VERSION))"
	@mkdir -p $(BIN)
	@$(STATIC_GO) build -ldflags "$(LDFLAGS)" -o $(BIN)/ ./starter/drydock ./worker/drydock-worker ./bridge/drydock-bridge

DEVCLUSTER_SOURCES := $(shell find deploy/devcluster -type f -not -name '*_test.go')
$(BIN)/devcluster: $(DEVCLUSTER_SOURCES)
	@echo "== building devcluster: etcd, kube-apiserver, kube-controller-manager and kube-scheduler in one binary"
	@echo "   (about five minutes and a few hundred megabytes of modules the first time, seconds afterwards)"
	@mkdir -p $(BIN)
	@cd deploy/devcluster && go build \
		-ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES_VERSION)" -o $@ .

DEVTEMPORAL_SOURCES := $(shell find deploy/devtemporal -type f -not -name '*_test.go')
$(BIN)/devtemporal: $(DEVTEMPORAL_SOURCES)
	@echo "== building devtemporal: Temporal's server and its UI in one binary (about four minutes the first time)"
	@mkdir -p $(BIN)
	@cd deploy/devtemporal && $(STATIC_GO) build -ldflags "-s -w" -o $@ .

# The tests of traces send to it.
$(BIN)/collector: $(wildcard tools/collector/*)
	@echo "== building an OpenTelemetry collector (about a minute the first time)"
	@mkdir -p $(BIN)
	@cd tools/collector && $(STATIC_GO) build -o $@ .

# tools/go.mod says which versions.
$(TOOLS)/.built: tools/go.mod tools/go.sum
	@echo "== building golangci-lint and workflowcheck (a few minutes the first time)"
	@cd tools && GOBIN=$(TOOLS) $(STATIC_GO) install tool
	@touch $@

lint: $(TOOLS)/.built ## golangci-lint, and workflowcheck for determinism
	@echo "== golangci-lint"
	@CGO_ENABLED=0 $(TOOLS)/golangci-lint run ./...
	@cd lab && CGO_ENABLED=0 $(TOOLS)/golangci-lint run ./...
	@echo "== workflowcheck"
	@CGO_ENABLED=0 $(TOOLS)/workflowcheck -test=false -config workflowcheck.yaml ./workflows/... ./maintain/... ./nexus/... ./examples/...

# A module of its own: it wants other versions than golangci-lint.
$(TOOLS)/.vuln-built: tools/vuln/go.mod tools/vuln/go.sum
	@echo "== building govulncheck"
	@cd tools/vuln && GOBIN=$(TOOLS) $(STATIC_GO) install tool
	@touch $@

VULN_DB ?= https://vuln.go.dev
vuln: $(TOOLS)/.vuln-built ## known vulnerabilities in what is called (VULN_DB=URL for a mirror of the database)
	@echo "== govulncheck"
	@for module in . lab deploy/devcluster deploy/devtemporal; do echo "-- $$module"; \
	if out=$$(cd $$module && GOMAXPROCS=2 $(TOOLS)/govulncheck -db $(VULN_DB) ./... 2>&1); then echo "$$out"; \
	elif echo "$$out" | grep -q 'fetching vulnerabilities'; then \
		echo "$$out"; echo "NOT CHECKED: the vulnerability database cannot be reached from here (VULN_DB names a mirror)"; break; \
	else echo "$$out"; exit 1; fi; done

# Tests wait more than they compute: those of two packages a core keep it busy. golangci-lint vets these modules, dependencies left out, of
# which go test would read all.
UNIT     := -vet=off -timeout 30m -p $(shell expr 2 \* $$(getconf _NPROCESSORS_ONLN))
UNIT_LAB := $$($(STATIC_GO) list ./... | grep -v -e /e2e -e /chaos)
unit: ## everything but the end-to-end tests
	@echo "== unit tests"
	@$(STATIC_GO) test $(UNIT) ./...
	@cd lab && $(STATIC_GO) test $(UNIT) $(UNIT_LAB)

# The detector needs cgo and has every package compiled a second time, so make test does without. A workflow and the rules
# have no goroutines; most time of the unit tests goes into these.
RACE = $$($(STATIC_GO) list ./... | grep -v -e /workflows/ -e /rules/)
race: ## the unit tests outside workflows and rules with the race detector, which needs gcc
ifeq ($(shell command -v gcc),)
	@echo "== unit tests with the race detector: left out, there is no gcc"
else
	@echo "== unit tests with the race detector"
	@CGO_ENABLED=1 go test -race $(UNIT) $(RACE)
	@cd lab && CGO_ENABLED=1 go test -race $(UNIT) $(UNIT_LAB)
endif

# Each of the tests that run at once has a control plane of its own, some 600 MB. They mostly wait: four keep
# two cores half busy, and six are hardly faster. They are of two packages, so that little waits for the last test of one.
E2E_AT_ONCE ?= 4
E2E := -vet=off -p 2 -parallel $(shell expr \( $(E2E_AT_ONCE) + 1 \) / 2)
# What the programs of the end-to-end tests used of their permissions: each run of a package adds to it.
PERMISSIONS := $(BIN)/permissions
E2E_TEST    := cd lab && DRYDOCK_PERMISSIONS=$(PERMISSIONS) $(STATIC_GO) test -timeout 45m -count 1 $(E2E) ./e2e/...
e2e: e2e-short e2e-slow ## all end-to-end tests: real control plane, real Temporal server, real binaries

e2e-short: drydock $(BIN)/devcluster $(BIN)/devtemporal ## the end-to-end tests but TestSlow...
	@echo "== end-to-end tests but those that take long (about eight minutes)"
	@rm -rf $(PERMISSIONS) && mkdir -p $(PERMISSIONS)
	@$(E2E_TEST) -skip '^TestSlow'
	@touch $(PERMISSIONS)/e2e-short

# The page is tested in a browser, which comes from Debian's packages where there is none.
chromium:
	@mkdir -p $(BIN)
	@command -v chromium >/dev/null || { echo "== installing Debian's package chromium"; \
		$(if $(filter 0,$(shell id -u)),,sudo) sh -c 'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium fonts-dejavu-core' >$(BIN)/chromium.log 2>&1 || \
		{ tail -5 $(BIN)/chromium.log >&2; echo "install chromium, by which the page is tested, and try again" >&2; exit 1; }; }

e2e-slow: drydock $(BIN)/devcluster $(BIN)/devtemporal $(BIN)/collector chromium ## the end-to-end tests TestSlow...; and after those of e2e-short: which permission none has used
	@echo "== end-to-end tests that take long (about seven minutes)"
	@mkdir -p $(PERMISSIONS)
	@$(E2E_TEST) -run '^TestSlow'
	@if [ -e $(PERMISSIONS)/e2e-short ]; then cd lab && \
		DRYDOCK_PERMISSIONS_OF_ALL=$(PERMISSIONS) $(STATIC_GO) test -count 1 -run TestNoPermissionIsUnused ./e2e/site; \
	else echo "== which permissions nobody uses is known after make e2e"; fi

HISTORIES := workflows/testdata/histories
record: build $(BIN)/collector chromium ## keep the histories of the end-to-end tests' workflows as those of a release (RELEASE=v0.2.0)
	@case "$(RELEASE)" in v*) ;; *) echo "make record RELEASE=v0.2.0: which release's histories?" >&2; exit 1;; esac
	@test ! -e $(HISTORIES)/$(RELEASE) || { echo "$(HISTORIES)/$(RELEASE) is there: a release's histories are frozen" >&2; exit 1; }
	@echo "== recording histories"
	@rm -rf $(BIN)/recording && mkdir -p $(BIN)/recording
	@cd lab && DRYDOCK_RECORD=$(BIN)/recording $(STATIC_GO) test -timeout 30m -count 1 $(E2E) ./e2e/...
	@cd $(BIN)/recording && sha256sum *.json.gz > SHA256SUMS
	@mkdir -p $(HISTORIES) && mv $(BIN)/recording $(HISTORIES)/$(RELEASE)
	@du -sh $(HISTORIES)/$(RELEASE)

frozen: ## refuse a commit that changed or deleted a history or the code of a release
	@tools/frozen.sh $(HISTORIES) workflows/testdata/code

devcluster-test: $(BIN)/devcluster ## the tests of devcluster, a module of its own
	@echo "== tests of devcluster"
	@cd deploy/devcluster && go test -timeout 30m ./...

devtemporal-test: ## the tests of devtemporal, a module of its own
	@echo "== tests of devtemporal"
	@cd deploy/devtemporal && $(STATIC_GO) test -timeout 15m ./...

MONITORING := deploy/monitoring/test

# Without service discovery, of which no test needs any: that is most of what Prometheus links.
$(TOOLS)/.prometheus-built: $(MONITORING)/go.mod $(MONITORING)/go.sum
	@echo "== building prometheus and promtool (about two minutes the first time)"
	@cd $(MONITORING) && GOBIN=$(TOOLS) $(STATIC_GO) install -tags remove_all_sd -ldflags "-s -w" tool
	@touch $@

test-monitoring: drydock $(BIN)/devcluster $(BIN)/devtemporal $(TOOLS)/.prometheus-built ## alerts and dashboards against a real Prometheus
	@echo "== alerts and dashboards (about a minute)"
	@cd $(MONITORING) && $(STATIC_GO) test -tags remove_all_sd -timeout 15m -count 1 ./...

CHART_TEST := deploy/chart/test
test-chart: drydock $(BIN)/devcluster $(BIN)/devtemporal ## the chart: rendered, linted, installed and upgraded on devcluster, and worked under
	@echo "== tests of the chart (a few minutes the first time: Helm's libraries are built)"
	@cd $(CHART_TEST) && $(STATIC_GO) vet ./... && $(STATIC_GO) test -timeout 20m -count 1 ./...

manifests: ## write what is made from other files: the chart's copies of permissions, and the kustomize base
	@cd $(CHART_TEST) && $(STATIC_GO) run ./manifests

chart: ## package the chart of a release (VERSION=v0.2.0) into .bin
	@echo "$(VERSION)" | grep -qE '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$$' \
		|| { echo "make chart VERSION=v0.2.0: $(VERSION) is no version of a release" >&2; exit 1; }
	@mkdir -p $(BIN)
	@cd $(CHART_TEST) && $(STATIC_GO) tool helm package .. --version $(VERSION:v%=%) --app-version $(VERSION) --destination $(BIN)

FUZZ_TIME ?= 60s
fuzz: ## each fuzz test for FUZZ_TIME (60s); its seeds are in make test
	@for target in ./config:FuzzParse ./k8s:FuzzSelection ./rules/spec:FuzzDecode ./rules/plan:FuzzDecode \
		./rules/schedule:FuzzLimitsJSON ./rules/schedule:FuzzParseAmount ./rules/policy:FuzzJudge \
		./rules/profile:FuzzLoad ./rules/profile/state:FuzzRead ./rules/profile/chain:FuzzParseCheck; do \
		echo "== $$target for $(FUZZ_TIME)"; \
		go test -run '^$$' -fuzz "^$${target#*:}$$" -fuzztime $(FUZZ_TIME) $${target%:*} || exit 1; \
	done

bench: build ## the benchmarks: a table, and bench.json (RUN=regexp chooses by name)
	@cd lab && $(STATIC_GO) run ./bench $(if $(RUN),-run '$(RUN)')

chaos-short: build ## a few faults, of those that make chaos lets happen
	@echo "== a few faults (a minute or two)"
	@cd lab && $(STATIC_GO) test -timeout 15m -count 1 ./chaos/...

chaos: build ## every fault before and after every step: a matrix, and chaos.json (RUN=regexp chooses by name)
	@cd lab && $(STATIC_GO) run ./chaos $(if $(RUN),-run '$(RUN)')

soak: build ## everything at once on 200 nodes, under a judge (FOR=duration, 10m; SEED=n repeats the choices of a run)
	@cd lab && $(STATIC_GO) run ./soak $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED))

rolling: build ## a plan over 300 nodes with everything that goes wrong on the way, under a judge
	@cd lab && $(STATIC_GO) run ./soak/rolling

unavailable: build ## all that takes nodes out at once, under maxUnavailable 1, with kills (FOR=duration, 10m; SEED=n)
	@cd lab && $(STATIC_GO) run ./soak/unavailable $(if $(FOR),-for $(FOR)) $(if $(SEED),-seed $(SEED))

objects: build ## 1,000 Kubernetes objects at once on 200 nodes, with bridges and workers killed (ARGS='-objects 100 -nodes 20 -waiting 0')
	@cd lab && $(STATIC_GO) run ./soak/objects $(ARGS)

reproducible: ## build the programs of a release twice, without caches, and compare them (VERSION=v0.2.0)
	@tools/reproducible.sh $(VERSION)

images: ## container images FROM scratch, with SBOMs, into .bin/images and Docker (ARCHITECTURES="amd64 arm64")
	@deploy/images/build.sh $(VERSION)

trial-images: $(BIN)/devcluster $(BIN)/devtemporal
	@deploy/images/build.sh $(VERSION) trial

push: ## push the images of a release (VERSION=v0.2.0 REGISTRY=registry.example.com/team; DIGESTS=FILE writes theirs)
	@test -n "$(REGISTRY)" || { echo "make push VERSION=v0.2.0 REGISTRY=registry.example.com/team: which registry?" >&2; exit 1; }
	@cd tools/image && $(STATIC_GO) run . push -from $(BIN)/images -version $(VERSION) $(if $(DIGESTS),-digests $(abspath $(DIGESTS))) $(REGISTRY) drydock drydock-cli

# Those of this machine alone are run, so that the others need not be built for it.
test-compose: $(BIN)/devcluster $(BIN)/devtemporal ## docker-compose.yaml out of images built here: a maintenance in it, the worker stopped on the way
	@echo "== compose (a minute or two)"
	@if docker info >/dev/null 2>&1; then \
		ARCHITECTURES=$$(go env GOHOSTARCH) deploy/images/build.sh $(VERSION) && deploy/images/build.sh $(VERSION) trial; fi
	@$(STATIC_GO) run ./deploy/compose/trial -version $(VERSION)

test-habits: chromium ## what the forge and the release read: workflows, release configuration, templates; and the makers of SBOMs, images, manual pages and the site
	@echo "== workflows, release configuration and templates (a minute the first time)"
	@cd tools/habits && $(STATIC_GO) test ./...
	@cd tools/sbom && $(STATIC_GO) test ./...
	@cd tools/image && $(STATIC_GO) test ./...
	@cd tools/man && $(STATIC_GO) test ./...
	@cd tools/site && $(STATIC_GO) test ./...

site: ## the documentation as a web site, into .bin/site (VERSION=v0.2.0 for that of a release, beside others)
	@cd tools/site && $(STATIC_GO) run . -version "$(if $(filter command,$(origin VERSION)),$(VERSION),dev)" ../.. $(BIN)/site

clean: ## remove what was built
	rm -rf $(BIN) .dev
