package starter

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/terminal"
)

// Version is set when the binary is linked: -ldflags "-X drydock.dev/drydock/starter.Version=v1.2.3".
var Version = ""

// clientVersion is the linked version, or else the commit that Go has recorded.
func clientVersion() string {
	if Version != "" {
		return Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	if commit == "" {
		return "unknown"
	}
	return commit + changed
}

func versionLine() string {
	return fmt.Sprintf("drydock %s (%s, %s/%s)", clientVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

func newVersion(a *invocation.App) *cobra.Command {
	var (
		out    terminal.Output
		server bool
	)
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, with --server also of the Temporal server",
		Long:  `Show the version of this program; with --server also that of the Temporal server it talks to.`,
		Example: `  drydock version
  drydock version --server`,
		Args: invocation.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return showVersion(cmd.Context(), a, &out, server) },
	}
	out.Register(cmd)
	cmd.Flags().BoolVar(&server, "server", false, "ask the Temporal server for its version too")
	return cmd
}

func showVersion(ctx context.Context, a *invocation.App, out *terminal.Output, server bool) error {
	v := api.Versions{Client: clientVersion(), Go: runtime.Version()}
	if server {
		c, err := a.Connect(ctx)
		if err != nil {
			return err
		}
		defer c.Close()
		ctx, cancel := context.WithTimeout(ctx, client.CallTimeout)
		defer cancel()
		info, err := c.Temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
		if err != nil {
			return c.Explain(&client.CallError{Doing: "asking for the server's version", Err: err})
		}
		v.Server, v.Address = info.GetServerVersion(), c.Address
	}
	var shown document.Document
	shown.Line("%s", versionLine())
	if server {
		shown.Line("Temporal server %s at %s", v.Server, v.Address)
	}
	return out.Write(a.Stdout, v, shown)
}
