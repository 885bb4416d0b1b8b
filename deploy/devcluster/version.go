package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the versions of what is inside",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersions(cmd.OutOrStdout())
		},
	}
}

// printVersions reads the versions that were linked in, so that they cannot
// differ from what go.mod says.
func printVersions(out io.Writer) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("read the build information: the binary carries none")
	}
	modules := map[string]string{}
	for _, module := range info.Deps {
		modules[module.Path] = module.Version
	}
	for _, part := range []struct{ name, module string }{
		{"kubernetes", "k8s.io/kubernetes"},
		{"etcd", "go.etcd.io/etcd/server/v3"},
	} {
		fmt.Fprintf(out, "%-10s %s\n", part.name, modules[part.module])
	}
	fmt.Fprintf(out, "%-10s %s\n", "go", runtime.Version())
	return nil
}
