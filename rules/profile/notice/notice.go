// Package notice has the notifications of profiles: what each kind is configured with, its texts, and when it is due. It sends
// nothing.
package notice

import (
	"slices"
	"time"

	"drydock.dev/drydock/rules/profile/conf"
)

// Notice is one configured notification, without its schedule.
type Notice interface {
	// Render is what is to be sent.
	Render(p Parameters) (Message, error)
}

// Message is what is to be sent. Title is the subject of a mail and the beginning of a thread.
type Message struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text"`
}

// Kinds are the names of the kinds that there are.
func Kinds() []string { return []string{"mail", "slack", "slackThread"} }

// Read makes a notification of kind; known reports whether there is such a kind.
func Read(kind string, o *conf.Object) (n Notice, known bool) {
	if !slices.Contains(Kinds(), kind) {
		return nil, false
	}
	if o.Absent() {
		o.Refuse("", "write config with what the kind needs", "required")
		return nil, true
	}
	switch kind {
	case "mail":
		return readMail(o), true
	case "slack":
		return readSlack(o), true
	default:
		return readSlackThread(o), true
	}
}

// Mail is sent by SMTP.
type Mail struct {
	// Auth authenticates by User and Password with AUTH PLAIN.
	Auth                     bool
	Address, From            string
	To                       []string
	Identity, User, Password string
	// Subject is sent as it is, as maintenance-controller does.
	Subject string
	message text
}

func readMail(o *conf.Object) Mail {
	return Mail{
		Auth: o.Bool("auth"), Address: o.Required("address", "host:port of a mail server"), From: o.Required("from", "who sends it"),
		To:       o.RequiredTexts("to", "who gets it"),
		Identity: o.Text("identity"), User: o.Text("user"), Password: o.Text("password"),
		Subject: o.Required("subject", "the subject of the mail"), message: readText(o, "message"),
	}
}

// Render is part of Notice.
func (m Mail) Render(p Parameters) (Message, error) {
	body, err := m.message.render(p)
	return Message{Title: m.Subject, Text: body}, err
}

// Slack posts to a webhook.
type Slack struct {
	Hook, Channel string
	message       text
}

func readSlack(o *conf.Object) Slack {
	return Slack{
		Hook: o.Required("hook", "the URL of an incoming webhook"), Channel: o.Required("channel", "the name of a channel"),
		message: readText(o, "message"),
	}
}

// Render is part of Notice.
func (s Slack) Render(p Parameters) (Message, error) {
	body, err := s.message.render(p)
	return Message{Text: body}, err
}

// SlackThread posts into one thread for a period from its beginning; a Lease remembers the thread.
type SlackThread struct {
	Token, Channel            string
	LeaseName, LeaseNamespace string
	Period                    time.Duration
	title, message            text
}

func readSlackThread(o *conf.Object) SlackThread {
	return SlackThread{
		Token: o.Required("token", "the token of a Slack app"), Channel: o.Required("channel", "the name of a channel"),
		LeaseName:      o.Required("leaseName", "the name of the Lease that remembers the thread"),
		LeaseNamespace: o.Required("leaseNamespace", "the namespace of the Lease"),
		Period:         o.RequiredDuration("period", "how long a thread lives from its beginning"),
		title:          readText(o, "title"), message: readText(o, "message"),
	}
}

// Render is part of Notice.
func (s SlackThread) Render(p Parameters) (Message, error) {
	title, err := s.title.render(p)
	if err != nil {
		return Message{}, err
	}
	body, err := s.message.render(p)
	return Message{Title: title, Text: body}, err
}
