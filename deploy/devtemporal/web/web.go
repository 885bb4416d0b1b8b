// Package web is Temporal's UI for the people of this machine, and for no page but its own.
package web

import (
	"fmt"
	"io/fs"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/api"
	"github.com/temporalio/ui-server/v2/server/auth"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/headers"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"

	"drydock.dev/drydock/deploy/devtemporal/inbound"
)

// Options say what the UI shows, and to whom.
type Options struct {
	// Temporal is the address of the gRPC API that the UI calls.
	Temporal string
	// Namespace is the one that the UI shows first.
	Namespace string
	// Names are those that are answered besides this machine's loopback names and addresses.
	Names []string
}

// Handler is the UI with its API. The UI's own server, ui-server's NewServer, hides its handler and answers every Host header, so that the
// same parts are put together here.
func Handler(o Options) (http.Handler, error) {
	settings, err := config.NewConfigProviderWithRefresh(&config.Config{
		TemporalGRPCAddress: o.Temporal, DefaultNamespace: o.Namespace, EnableUI: true, HideLogs: true,
	})
	if err != nil {
		return nil, fmt.Errorf("configuring the UI: %w", err)
	}
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.CSRFWithConfig(middleware.CSRFConfig{
		CookiePath: "/", CookieSameSite: http.SameSiteStrictMode, Skipper: csrf.SkipOnAuthorizationHeader,
	}))
	route.SetHealthRoute(e)
	forwarded := headers.WithForwardHeaders([]string{auth.AuthorizationExtrasHeader, "Caller-Type"})
	if err := route.SetAPIRoutes(e, settings, []api.Middleware{forwarded}); err != nil {
		return nil, err
	}
	assets, err := ui.Assets()
	if err == nil {
		assets, err = fs.Sub(assets, "local")
	}
	if err == nil {
		err = route.SetUIRoutes(e, "", assets)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the UI's pages: %w", err)
	}
	route.SetRenderRoute(e)
	return inbound.Pages(e, o.Names...), nil
}
