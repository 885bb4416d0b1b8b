package url

import (
	"net/url"
	"slices"
	"strings"

	"drydock.dev/drydock/outbound"
)

// checkPlaintext refuses a URL whose credentials would go unencrypted, unless that was allowed. Every service of shoutrrr
// encrypts unless configured otherwise.
func (c *Config) checkPlaintext(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return nil //nolint:nilerr // it is refused for that
	}
	switches := switchesOf(u)
	unencrypted := strings.HasSuffix(strings.ToLower(u.Scheme), "+http") || switches.has("disabletls", yes...)
	switch u.Scheme {
	case "generic": // what else it has is the receiver's
	case "smtp":
		unencrypted = mailsInClear(u, switches)
	default:
		unencrypted = unencrypted || switches.has("scheme", "http")
	}
	if !unencrypted || c.AllowPlaintext || outbound.IsLoopback(u.Hostname()) {
		return nil
	}
	return outbound.ErrPlaintext
}

// mailsInClear reports whether a password would go to a mail server without TLS. A plain one never is: net/smtp refuses that.
func mailsInClear(u *url.URL, s switches) bool {
	if _, password := u.User.Password(); !password {
		return false
	}
	if s.has("encryption", "implicittls") || u.Port() == "465" && (len(s["encryption"]) == 0 || s.has("encryption", "auto")) {
		return false
	}
	return s.has("encryption", "none") || s.has("usestarttls", no...) || s.has("starttls", no...) ||
		s.has("auth", "oauth2") && !s.has("requirestarttls", yes...)
}

// switches are the options of a URL beside the address, by names in small letters, as shoutrrr reads them.
type switches url.Values

// yes and no are the ways in which shoutrrr has them.
var yes, no = []string{"true", "1", "yes", "y"}, []string{"false", "0", "no", "n"}

func switchesOf(u *url.URL) switches {
	all := switches{}
	for name, values := range u.Query() {
		name = strings.ToLower(name)
		all[name] = append(all[name], values...)
	}
	return all
}

// has reports whether a switch is set to one of some values.
func (s switches) has(name string, values ...string) bool {
	return slices.ContainsFunc(s[name], func(value string) bool { return slices.Contains(values, strings.ToLower(value)) })
}
