// Package profile tests from end to end profiles of maintenance-controller.
package profile

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
