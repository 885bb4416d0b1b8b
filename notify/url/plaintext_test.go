package url

import (
	"errors"
	"testing"

	"drydock.dev/drydock/outbound"
)

func TestCredentialsThatWouldGoUnencrypted(t *testing.T) {
	for address, refused := range map[string]bool{
		"generic://example.com/hook?@X-Token=canary":                                   false,
		"generic://example.com/hook?disabletls=no&scheme=http":                         false,
		"generic://example.com/hook?disabletls=yes":                                    true,
		"generic+http://example.com/hook":                                              true,
		"generic+https://example.com/hook":                                             false,
		"generic://127.0.0.1:8080/hook?disabletls=yes":                                 false,
		"gotify://example.com/Acanary?DisableTLS=Y":                                    true,
		"matrix://user:canary@example.com/?disableTLS=true":                            true,
		"mattermost://example.com/canary?disabletls=1":                                 true,
		"signal://example.com/+1/+2?disabletls=No&DisableTLS=yes":                      true,
		"ntfy://user:canary@example.com/topic?scheme=HTTP":                             true,
		"ntfy://user:canary@example.com/topic?scheme=https":                            false,
		"bark://:canary@example.com/?scheme=http":                                      true,
		"smtp://example.com/?from=a@b&to=c@d&encryption=none":                          false,
		"smtp://user:canary@example.com/?from=a@b&to=c@d":                              false,
		"smtp://user:canary@example.com/?from=a@b&to=c@d&encryption=None":              true,
		"smtp://user:canary@example.com/?from=a@b&to=c@d&starttls=no":                  true,
		"smtp://user:canary@example.com/?from=a@b&to=c@d&usestarttls=0":                true,
		"smtp://user:canary@example.com:465/?from=a@b&to=c@d&starttls=no":              false,
		"smtp://user:canary@example.com:465/?encryption=ExplicitTLS&starttls=no":       true,
		"smtp://user:canary@example.com/?encryption=ImplicitTLS&starttls=no":           false,
		"smtp://user:canary@example.com/?from=a@b&to=c@d&auth=OAuth2":                  true,
		"smtp://user:canary@example.com:587/?auth=OAuth2&requirestarttls=yes&from=a@b": false,
		"discord://canary@1": false,
	} {
		if err := (&Config{}).checkPlaintext(address); errors.Is(err, outbound.ErrPlaintext) != refused {
			t.Errorf("%s: %v", address, err)
		}
		if err := (&Config{AllowPlaintext: true}).checkPlaintext(address); err != nil {
			t.Errorf("%s, allowed: %v", address, err)
		}
	}
}
