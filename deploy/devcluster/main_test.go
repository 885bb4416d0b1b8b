package main

import (
	"os"
	"testing"
)

// asMain makes the test binary be devcluster, for the processes that the tests start.
const asMain = "DEVCLUSTER_TEST_MAIN"

func TestMain(m *testing.M) {
	component := false
	if len(os.Args) > 1 {
		_, component = components[os.Args[1]]
	}
	// `up` starts its components as this same binary, with an environment of its own.
	if component || os.Getenv(asMain) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}
