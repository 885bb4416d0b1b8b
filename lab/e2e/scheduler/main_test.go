// Package scheduler tests from end to end slots, and what the scheduler, the workers and Temporal survive.
package scheduler

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
