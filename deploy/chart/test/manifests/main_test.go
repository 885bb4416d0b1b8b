package main

import (
	"testing"

	"drydock.dev/drydock/deploy/devstack"
)

func TestWhatIsMadeIsUpToDate(t *testing.T) {
	root, err := devstack.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := stale(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		t.Errorf("%v are not what they would be: run make manifests", files)
	}
}
