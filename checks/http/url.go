package http

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"text/template"

	"drydock.dev/drydock/checks"
)

// renderURL fills in a URL and refuses one that leads elsewhere because of what a maintenance's text says. It reports whether
// the node decides the host.
func renderURL(t *template.Template, s checks.Subject) (u *url.URL, byNode bool, err error) {
	if u, err = parseURL(t, s); err != nil {
		return nil, false, err
	}
	if err := checks.CheckURL(u); err != nil {
		return nil, false, err
	}
	if err := checkPath(u); err != nil {
		return nil, false, err
	}
	// Two texts, so that a value that equals one of them is found by the other.
	for _, text := range []string{"neutral-a", "neutral-b"} {
		other, err := parseURL(t, neutral(s, text))
		if err != nil || other.Scheme != u.Scheme || other.Host != u.Host {
			return nil, false, errors.New("its scheme or host depends on the maintenance: only Cluster, and of a node that exists Node and InternalIP, may stand there")
		}
	}
	for _, text := range []string{"neutral-a", "neutral-b"} {
		elsewhere := s
		elsewhere.Node, elsewhere.InternalIP = text, text
		other, err := parseURL(t, elsewhere)
		byNode = byNode || err != nil || other.Host != u.Host
	}
	return u, byNode, nil
}

func parseURL(t *template.Template, s checks.Subject) (*url.URL, error) {
	ip := escapeURL(s.InternalIP)
	if address, err := netip.ParseAddr(s.InternalIP); err == nil && address.Is6() && address.Zone() == "" {
		ip = "[" + address.String() + "]"
	}
	s = s.Each(escapeURL)
	s.InternalIP = ip
	text, err := checks.Render(t, s)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("is not a URL once its values are filled in: want http:// or https:// and a host")
	}
	return u, nil
}

// checkPath refuses a path that a server may read as another one: ".." by itself, or in a segment that hides a slash.
func checkPath(u *url.URL) error {
	text := strings.ReplaceAll(u.Path, `\`, "/") // decoded
	parts := strings.Split(text, "/")
	if slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return fmt.Errorf("its path has a segment that leads elsewhere (%s)", path.Clean("/"+escapeText(text)))
	}
	return nil
}

// neutral replaces everything that must not decide which host is called. The name of a node that was not found is
// anybody's text.
func neutral(s checks.Subject, text string) checks.Subject {
	node, cluster, ip := s.Node, s.Cluster, s.InternalIP
	s = s.Each(func(string) string { return text })
	s.Cluster, s.InternalIP = cluster, ip
	if ip != "" {
		s.Node = node
	}
	return s
}
