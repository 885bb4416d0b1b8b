// Package caller tests from end to end workflows that have nodes maintained: package maintain, and the reports that it lives by.
package caller

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
