package invocation

import (
	"cmp"
	"os"
	"os/user"
	"strings"

	"drydock.dev/drydock/rules/spec"
)

// Environment variables of Drydock's own; Temporal's and Kubernetes' are read by their libraries.
const (
	EnvRequestor = "DRYDOCK_REQUESTOR"
	EnvCluster   = "DRYDOCK_CLUSTER"
	envTaskQueue = "DRYDOCK_TASK_QUEUE"
	EnvConfig    = "DRYDOCK_CONFIG"
)

// Environment is a process environment in the form of os.Environ.
type Environment []string

// Environ and LookupEnv make it a temporalenv.Environment.
func (e Environment) Environ() []string { return e }

// LookupEnv is os.LookupEnv for this environment.
func (e Environment) LookupEnv(name string) (string, bool) {
	// Of duplicates the last one counts, as for exec.Cmd.
	for i := len(e) - 1; i >= 0; i-- {
		if key, value, _ := strings.Cut(e[i], "="); key == name {
			return value, true
		}
	}
	return "", false
}

// Get is empty for a variable that is not set.
func (e Environment) Get(name string) string {
	value, _ := e.LookupEnv(name)
	return value
}

// userName is the name of the user at the keyboard. A container without a password file knows it from the
// environment only, if at all.
func (e Environment) userName() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return cmp.Or(e.Get("USER"), e.Get("LOGNAME"), e.Get("USERNAME"))
}

// unknownUser is who acts where the user has no name.
const unknownUser = "unknown"

// by says who sends a message: user@host.
func (e Environment) by() string {
	name := cmp.Or(e.userName(), unknownUser)
	if host, err := os.Hostname(); err == nil && host != "" {
		return name + "@" + host
	}
	return name
}

// Requestor is whom a maintenance is for where no flag and no file says so.
func (e Environment) Requestor() string {
	return cmp.Or(e.Get(EnvRequestor), requestorFrom(e.userName()))
}

// requestorFrom makes a requestor's name of a user's name, which may have characters and lengths that a requestor
// cannot have (DOMAIN\user, user@example.com, a single letter).
func requestorFrom(userName string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._-", r):
			return r
		default:
			return '-'
		}
	}, userName)
	clean = strings.Trim(clean, "._-")
	if len(clean) == 1 {
		clean = "user-" + clean
	}
	if len(clean) > 63 {
		clean = strings.TrimRight(clean[:63], "._-")
	}
	if spec.RequestorName(clean) != nil {
		return "manual"
	}
	return clean
}
