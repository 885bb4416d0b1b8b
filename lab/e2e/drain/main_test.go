// Package drain tests from end to end how a node is emptied and comes back.
package drain

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
