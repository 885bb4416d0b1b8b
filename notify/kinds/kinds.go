// Package kinds lists the kinds of channels there are. A new one is a package, and a line here.
package kinds

import (
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/email"
	"drydock.dev/drydock/notify/kubernetes"
	"drydock.dev/drydock/notify/pagerduty"
	"drydock.dev/drydock/notify/slack"
	"drydock.dev/drydock/notify/sns"
	"drydock.dev/drydock/notify/url"
	"drydock.dev/drydock/notify/webhook"
)

// All are the kinds, in the order in which errors list them.
func All() notify.Kinds {
	return notify.Kinds{
		slack.Kind,
		email.Kind,
		webhook.Kind,
		sns.Kind,
		pagerduty.Kind,
		kubernetes.Kind,
		url.Kind,
	}
}
