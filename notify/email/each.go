package email

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"slices"
	"strings"
	"sync"

	gomail "github.com/wneessen/go-mail"

	"drydock.dev/drydock/notify"
)

// refusesRecipient reports whether a server refused addresses and not the message.
func refusesRecipient(err error) bool {
	var refused *gomail.SendError
	return errors.As(err, &refused) && refused.Reason == gomail.ErrSMTPRcptTo
}

// sendEach sends the mail separately to each recipient who has not got it yet, so that an address that the server refuses
// does not keep it from the others. It returns who was refused for good; the error is about those who are to be tried
// again, or about all.
func (m *Mailer) sendEach(ctx context.Context, client *gomail.Client, mail Mail) (refused []string, err error) {
	var mails []*gomail.Msg
	var to []string
	for _, one := range mail.To {
		if m.partly.got(mail.Key, one) {
			continue
		}
		message, err := mail.messageTo(one)
		if err != nil {
			return nil, err
		}
		mails, to = append(mails, message), append(to, one)
	}
	sent := client.DialAndSendWithContext(ctx, mails...)
	var again, never []error
	for i, message := range mails {
		why := message.SendError()
		switch {
		case message.IsDelivered():
			m.partly.note(mail.Key, to[i])
		case why == nil:
			return nil, classified(sent) // the connection failed
		case isFinal(why):
			never = append(never, why)
			refused = append(refused, why.Error())
		default:
			again = append(again, why)
		}
	}
	switch {
	case len(again) > 0:
		return nil, fmt.Errorf("sending mail: %w", errors.Join(again...))
	case !m.partly.has(mail.Key):
		return nil, classified(errors.Join(never...))
	default:
		m.partly.forget(mail.Key)
		return refused, nil
	}
}

// messageTo is the mail as all get it, on its way to one of them.
func (m Mail) messageTo(one string) (*gomail.Msg, error) {
	message, _, err := m.message()
	if err != nil {
		return nil, err
	}
	address, err := mail.ParseAddress(one)
	if err != nil {
		return nil, notify.AsPermanent(fmt.Errorf("email.to: %w", err))
	}
	var all []string
	for _, to := range message.GetAddrHeader(gomail.HeaderTo) {
		all = append(all, to.String())
	}
	message.SetAddrHeaderFromMailAddress(gomail.HeaderTo)
	message.SetGenHeaderPreformatted("To", strings.Join(all, ", "))
	message.BccMailAddress(address)
	return message, nil
}

// maxPartly bounds the messages that are remembered.
const maxPartly = 200

// partly are the messages that some of their recipients have got and others not yet, by key. It is of this worker only: what
// is forgotten is sent again, with the same ID.
type partly struct {
	mu   sync.Mutex
	keys []string
	whom map[string][]string
}

func (p *partly) has(key string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.whom[key]) > 0
}

func (p *partly) got(key, to string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.whom[key], to)
}

func (p *partly) note(key, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.whom == nil {
		p.whom = map[string][]string{}
	}
	if len(p.whom[key]) == 0 {
		p.keys = append(p.keys, key)
	}
	p.whom[key] = append(p.whom[key], to)
	if len(p.keys) > maxPartly {
		delete(p.whom, p.keys[0])
		p.keys = p.keys[1:]
	}
}

func (p *partly) forget(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.whom, key)
	p.keys = slices.DeleteFunc(p.keys, func(k string) bool { return k == key })
}
