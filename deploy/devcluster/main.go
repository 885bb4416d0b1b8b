// Command devcluster is a Kubernetes cluster in one binary: a real control
// plane on loopback ports, with simulated nodes and pods.
package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func main() {
	os.Exit(run())
}

// run becomes one of the upstream programs when the first argument names one;
// `up` starts its components this way. All else is devcluster's own command line.
func run() int {
	if len(os.Args) > 1 {
		if component, ok := components[os.Args[1]]; ok {
			// A component reads flags, plugins and its own name from os.Args.
			os.Args = os.Args[1:]
			return component(os.Args[0], os.Args[1:])
		}
	}
	forgetUpstreamFlags()
	if err := newRootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "devcluster:", err)
		return 1
	}
	return 0
}

// forgetUpstreamFlags takes away the process-wide flags that the Kubernetes
// packages register as they are linked in: cobra gives them to every command,
// and their --version is not the kind of flag that it expects.
func forgetUpstreamFlags() {
	pflag.CommandLine = pflag.NewFlagSet(os.Args[0], pflag.ExitOnError)
}

func newRootCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "devcluster",
		Short: "A real Kubernetes control plane with simulated nodes, in one binary",
		Long: `devcluster runs a real etcd, kube-apiserver, kube-controller-manager and
kube-scheduler on free loopback ports, and plays the nodes and pods itself.
It needs no container runtime and no root, and several clusters run side by side.

The binary is also kubectl, and each of the components:

  devcluster kubectl ...     kubectl, which honours KUBECONFIG as always
  devcluster etcd --help     (kube-apiserver, kube-controller-manager, kube-scheduler)`,
		Example: `  devcluster up --dir /tmp/dc --nodes 6 &
  export KUBECONFIG=/tmp/dc/kubeconfig
  devcluster kubectl get nodes
  devcluster down --dir /tmp/dc`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	cmd.AddCommand(newUpCommand(), newDownCommand(), newVersionCommand())
	return cmd
}
