// Package invocation is one run of the command line: its process, its persistent flags, and the Drydock they lead to.
package invocation

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/starter/terminal"
)

// Messages is where a command says what it does: on standard output for people, on standard error where standard
// output is for programs.
func (a *App) Messages(o *terminal.Output) io.Writer {
	if o.Table() {
		return a.Stdout
	}
	return a.Stderr
}

// Waiting is a display of what a command waits for: in a pipe a line for each change.
func (a *App) Waiting(out io.Writer) *terminal.Display { return terminal.NewDisplay(out, a.Clock) }

// Progress is a display of what goes on beside a command's own output: in a terminal, or with --verbose.
func (a *App) Progress(out io.Writer) *terminal.Display {
	return terminal.NewProgress(out, a.Clock, a.Global.verbose)
}

// WarnUnanswered says why nobody answers; nothing if somebody does.
func (a *App) WarnUnanswered(why error) {
	if why != nil {
		fmt.Fprintf(a.Stderr, "Warning: %s\n", terminal.OneLine(WithoutKeys(why).Error()))
	}
}

// Process is what a command line sees of the process it runs in.
type Process struct {
	// Args begin with the name of the program.
	Args    []string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Notify asks for the process's interrupts, as signal.Notify does. It is for commands that treat a second
	// interrupt differently from the first; without it the context's end is the only interrupt there is.
	Notify func(chan<- os.Signal)
}

// App is one invocation: the process, and what the persistent flags say.
type App struct {
	Process
	// Name is the program as the user typed it, and as hints show it.
	Name   string
	Env    Environment
	Global globalFlags
	Clock  func() time.Time
}

// New is the invocation of a process.
func New(p Process) *App {
	if len(p.Args) == 0 {
		p.Args = []string{"drydock"}
	}
	if isCompletion(p.Args[0]) {
		p.Args = append([]string{p.Args[0], cobra.ShellCompRequestCmd}, p.Args[1:]...)
	}
	return &App{Process: p, Name: displayName(p.Args[0]), Env: p.Environ, Clock: time.Now}
}

// isCompletion reports whether the program was started under the name by which kubectl asks a plugin for completions: a link to it is
// enough.
func isCompletion(arg0 string) bool { return programName(arg0) == "kubectl_complete-drydock" }

func programName(arg0 string) string { return strings.TrimSuffix(filepath.Base(arg0), ".exe") }

// displayName is how the user calls the program: as a kubectl plugin, which kubectl finds by the file's name, or by itself.
func displayName(arg0 string) string {
	if strings.HasPrefix(programName(arg0), "kubectl-drydock") || isCompletion(arg0) {
		return "kubectl drydock"
	}
	return "drydock"
}
