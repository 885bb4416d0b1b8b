package checks

import (
	"errors"
	"fmt"
	"net/url"

	"drydock.dev/drydock/outbound"
)

// CheckURL is the rule for the URLs of checks and hooks. The error does not show the URL: it may hold credentials.
func CheckURL(u *url.URL) error {
	err := outbound.CheckURL(u)
	if errors.Is(err, outbound.ErrCredentials) {
		return fmt.Errorf("%w: put them in a file or the environment, and name it in bearerToken or secretHeaders", err)
	}
	return err
}
