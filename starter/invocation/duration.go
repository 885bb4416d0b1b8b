package invocation

import (
	"time"

	"github.com/spf13/pflag"

	"drydock.dev/drydock/rules/period"
)

// DurationVar adds a flag for a length of time, which may have days.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var((*duration)(p), name, usage)
}

// duration is a flag's value in the form of period.Duration.
type duration time.Duration

// Set reads it.
func (d *duration) Set(text string) error {
	parsed, err := period.ParseDuration(text)
	*d = duration(parsed)
	return err
}

// String is as the standard library writes it, and empty for nothing, which is no default to show.
func (d *duration) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type names the flag's value in the help.
func (d *duration) Type() string { return "duration" }
