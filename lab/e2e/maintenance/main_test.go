// Package maintenance tests from end to end one maintenance: from the command line, by messages, with its notices and its outputs.
package maintenance

import (
	"os"
	"testing"

	"drydock.dev/drydock/lab/e2e/site"
)

func TestMain(m *testing.M) { os.Exit(site.Main(m)) }
