package input

import (
	"slices"

	"github.com/spf13/pflag"
)

// windowFlags say when a maintenance may be granted its slot.
type windowFlags struct {
	names    []string
	expected string
	ignore   string
}

func (s *windowFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.names, "window", nil, "go only while this window of the worker's configuration is open, with several while all are, none for none (repeatable); see \"drydock windows\"")
	f.StringVar(&s.expected, "expected-duration", "", "how long it takes, such as 2h: it goes only where that ends before the windows close")
	f.StringVar(&s.ignore, "ignore-windows", "", "go at any time, for this reason, if the policy lets it")
}

func (s *windowFlags) setters() map[string]setter {
	return map[string]setter{
		"window":            set("windows", slices.DeleteFunc(append([]string{}, s.names...), func(name string) bool { return name == "none" })),
		"expected-duration": set("expectedDuration", s.expected),
		"ignore-windows":    set("ignoreWindows.reason", s.ignore),
	}
}
