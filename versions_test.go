package drydock_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// find returns what the first group of a pattern is in a file, as numbers.
func find(t *testing.T, file, pattern string) (major, minor int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)` + pattern).FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s has nothing like %s", file, pattern)
	}
	for i, number := range []*int{&major, &minor} {
		if *number, err = strconv.Atoi(string(found[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	return major, minor
}

// TestTheTableOfVersionsIsWhatTestsRunAgainst compares docs/tasks/upgrade.md with what is built.
func TestTheTableOfVersionsIsWhatTestsRunAgainst(t *testing.T) {
	const devcluster, devtemporal = "deploy/devcluster/go.mod", "deploy/devtemporal/go.mod"
	_, tested := find(t, devcluster, `^\tk8s\.io/kubernetes v(\d+)\.(\d+)\.`)
	if _, said := find(t, "Makefile", `^KUBERNETES_VERSION := v(\d+)\.(\d+)\.`); said != tested {
		t.Errorf("the Makefile says that devcluster is 1.%d, and its go.mod has 1.%d", said, tested)
	}
	_, library := find(t, "go.mod", `^\tk8s\.io/client-go v(\d+)\.(\d+)\.`)
	_, oldest := find(t, "deploy/chart/Chart.yaml", `^kubeVersion: ">=(\d+)\.(\d+)\.0-0"$`)
	major, server := find(t, devtemporal, `^\tgo\.temporal\.io/server v(\d+)\.(\d+)\.`)
	if _, composed := find(t, "docker-compose.yaml", `temporalio/server:(\d+)\.(\d+)\.`); composed != server {
		t.Errorf("compose runs Temporal %d.%d, and tests run against %d.%d", major, composed, major, server)
	}
	expected := fmt.Sprintf("1.%d to 1.%d", oldest, tested-1)
	switch {
	case library == tested+1:
		expected += fmt.Sprintf(", and 1.%d", library)
	case library > tested+1:
		expected += fmt.Sprintf(", and 1.%d to 1.%d", tested+1, library)
	}
	text, err := os.ReadFile("docs/tasks/upgrade.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{
		fmt.Sprintf("| Kubernetes | 1.%d | tested:", tested),
		fmt.Sprintf("| Kubernetes | %s | expected, not tested: client-go 1.%d ", expected, library),
		fmt.Sprintf("| Kubernetes | older than 1.%d | the chart refuses it", oldest),
		fmt.Sprintf("| Temporal server | %d.%d | tested:", major, server),
		fmt.Sprintf("| Temporal server | newer than %d.%d | expected, not tested", major, server),
		fmt.Sprintf("| Temporal server | older than %d.%d | not tested", major, server),
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(row)).Match(text) {
			t.Errorf("docs/tasks/upgrade.md has no row %q", row)
		}
	}
}
