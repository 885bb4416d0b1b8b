// Package url delivers to any other service, by a URL of shoutrrr such as "discord://token@id". Unlike the other kinds it
// follows redirects, since shoutrrr has HTTP clients of its own.
package url

import (
	"context"
	"errors"
	"fmt"
	neturl "net/url"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/nicholas-fedor/shoutrrr/pkg/util"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"

	"drydock.dev/drydock/notify"
)

// timeout bounds the wait for a service. Some retry by themselves, which takes longer than one request.
const timeout = time.Minute

// sender delivers by shoutrrr.
type sender struct {
	config *Config
	// free holds the one turn of a channel: shoutrrr cannot be cancelled, so that a hanging receiver would otherwise
	// hold a goroutine for each try.
	free chan struct{}
}

func newSender(c *Config) *sender {
	s := &sender{config: c, free: make(chan struct{}, 1)}
	s.free <- struct{}{}
	return s
}

func (s *sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	address, err := d.Secret("url", s.config.Value)
	if err != nil {
		return notify.Receipt{}, err
	}
	u, err := neturl.Parse(address)
	if err != nil || u.Scheme == "" || strings.EqualFold(u.Scheme, "logger") {
		return notify.Receipt{}, notify.AsPermanent(errors.New("url: want the URL of a service of shoutrrr, like discord://token@id"))
	}
	subject, text, err := d.Words(escape(u))
	if err != nil {
		return notify.Receipt{}, err
	}
	if err := s.config.checkPlaintext(address); err != nil {
		return notify.Receipt{}, notify.AsPermanent(fmt.Errorf("url: %w", err))
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-s.free:
	case <-ctx.Done():
		return notify.Receipt{}, fmt.Errorf("waiting for an earlier delivery to end: %w", ctx.Err())
	}
	result := make(chan error, 1)
	go func() {
		defer func() { s.free <- struct{}{} }()
		// Not every service has a title.
		result <- sendBy(address, strings.TrimSpace(subject+"\n\n"+text))
	}()
	select {
	case err := <-result:
		return notify.Receipt{}, err
	case <-ctx.Done():
		return notify.Receipt{}, fmt.Errorf("the service has not answered: %w", ctx.Err())
	}
}

// sendBy sends by the service that the URL names.
func sendBy(address, text string) (err error) {
	defer func() {
		// It panics on some URLs that it cannot read, in a goroutine that would take the worker along.
		if r := recover(); r != nil {
			err = notify.AsPermanent(errors.New("url: the service cannot read it"))
		}
	}()
	var services router.ServiceRouter
	services.SetLogger(util.DiscardLogger) // it would log the URL
	service, err := services.Locate(address)
	if err != nil {
		return unusable(address, err)
	}
	if err := service.Send(text, &types.Params{}); err != nil {
		var status jsonclient.Error
		if errors.As(err, &status) {
			return notify.ByStatus(status.StatusCode, fmt.Errorf("the service %s: %w", service.GetID(), err))
		}
		return fmt.Errorf("the service %s: %w", service.GetID(), err)
	}
	return nil
}

// unusable makes a URL that no service takes permanent. Matrix already logs in when it is asked to take it.
func unusable(address string, err error) error {
	out := fmt.Errorf("url: %w", err)
	if strings.HasPrefix(strings.ToLower(address), "matrix:") && errors.Is(err, router.ErrInitializeFailed) {
		return out
	}
	return notify.AsPermanent(out)
}
