package site_test

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

// TestNoPermissionIsUnused is told by make e2e, after all end-to-end tests, where these have written what their programs used.
func TestNoPermissionIsUnused(t *testing.T) {
	folder := os.Getenv("DRYDOCK_PERMISSIONS_OF_ALL")
	if folder == "" {
		t.Skip("DRYDOCK_PERMISSIONS_OF_ALL names no folder")
	}
	for name, account := range site.ShippedAccounts {
		t.Run(name, func(t *testing.T) {
			if unused, err := account.Unused(folder); err != nil || len(unused) > 0 {
				t.Errorf("the shipped role grants what no test's %s has used: %q, %v", name, unused, err)
			}
		})
	}
}
