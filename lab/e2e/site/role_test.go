package site_test

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

// TestNoPermissionIsUnused is told by make e2e, after all end-to-end tests, where these have written what their workers used.
func TestNoPermissionIsUnused(t *testing.T) {
	folder := os.Getenv("DRYDOCK_PERMISSIONS_OF_ALL")
	if folder == "" {
		t.Skip("DRYDOCK_PERMISSIONS_OF_ALL names no folder")
	}
	if unused, err := site.UnusedPermissions(folder); err != nil || len(unused) > 0 {
		t.Errorf("the shipped role grants what no test's worker has used: %q, %v", unused, err)
	}
}
