// Package kinds lists the kinds of channels there are. A new one is a package, and a line here.
package kinds

import (
	"drydock/notify"
	"drydock/notify/email"
	"drydock/notify/kubernetes"
	"drydock/notify/slack"
	"drydock/notify/sns"
	"drydock/notify/url"
	"drydock/notify/webhook"
)

// All are the kinds, in the order in which errors list them.
func All() notify.Kinds {
	return notify.Kinds{
		slack.Kind,
		email.Kind,
		webhook.Kind,
		sns.Kind,
		kubernetes.Kind,
		url.Kind,
	}
}
