// Package bridge tests from end to end that Kubernetes objects drive Drydock.
package bridge

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
