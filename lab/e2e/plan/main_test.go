// Package plan tests from end to end plans over many nodes, their windows, and plans that go in lockstep.
package plan

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
