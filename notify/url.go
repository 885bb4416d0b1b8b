package notify

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/types"
	"github.com/nicholas-fedor/shoutrrr/pkg/util"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"

	"drydock/config/secret"
)

// urlTimeout bounds the wait for a service. Some retry by themselves, which takes longer than one request.
const urlTimeout = time.Minute

// urlSender delivers by shoutrrr.
type urlSender struct {
	url secret.Value
	// free holds the one turn of a channel: shoutrrr cannot be told to give up, so that a hanging receiver would otherwise
	// hold a goroutine for each try.
	free chan struct{}
}

func newURLSender(url secret.Value) *urlSender {
	s := &urlSender{url: url, free: make(chan struct{}, 1)}
	s.free <- struct{}{}
	return s
}

func (s *urlSender) send(ctx context.Context, d *delivery) (Receipt, error) {
	subject, text, err := d.words(nil)
	if err != nil {
		return Receipt{}, err
	}
	address, err := d.secrets.read("url", s.url)
	if err != nil {
		return Receipt{}, err
	}
	if u, err := url.Parse(address); err != nil || u.Scheme == "" || strings.EqualFold(u.Scheme, "logger") {
		return Receipt{}, permanent(errors.New("url: want the URL of a service of shoutrrr, like discord://token@id"))
	}
	ctx, cancel := context.WithTimeout(ctx, urlTimeout)
	defer cancel()
	select {
	case <-s.free:
	case <-ctx.Done():
		return Receipt{}, fmt.Errorf("waiting for an earlier delivery to end: %w", ctx.Err())
	}
	result := make(chan error, 1)
	go func() {
		defer func() { s.free <- struct{}{} }()
		// Not every service has a title.
		result <- shout(address, strings.TrimSpace(subject+"\n\n"+text))
	}()
	select {
	case err := <-result:
		return Receipt{}, err
	case <-ctx.Done():
		return Receipt{}, fmt.Errorf("the service has not answered: %w", ctx.Err())
	}
}

// shout sends by the service that the URL names.
func shout(address, text string) (err error) {
	defer func() {
		// It panics on some URLs that it cannot read, in a goroutine that would take the worker along.
		if r := recover(); r != nil {
			err = permanent(errors.New("url: the service cannot read it"))
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
			return byStatus(status.StatusCode, fmt.Errorf("the service %s: %w", service.GetID(), err))
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
	return permanent(out)
}
