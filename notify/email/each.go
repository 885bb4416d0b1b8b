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

	"drydock/notify"
)

// refusesRecipient tells that a server refused addresses and not the message.
func refusesRecipient(err error) bool {
	var refused *gomail.SendError
	return errors.As(err, &refused) && refused.Reason == gomail.ErrSMTPRcptTo
}

// sendEach sends the mail to each recipient by itself, who has not got it yet, so that an address that the server refuses
// keeps it from nobody else. It tells who was refused for good; the error is of those who are to be tried again, or of all.
func (s *sender) sendEach(ctx context.Context, client *gomail.Client, d *notify.Delivery) (refused []string, err error) {
	var mails []*gomail.Msg
	var to []string
	for _, one := range s.config.To {
		if s.partly.got(d.Key, one) {
			continue
		}
		m, err := s.messageTo(d, one)
		if err != nil {
			return nil, err
		}
		mails, to = append(mails, m), append(to, one)
	}
	sent := client.DialAndSendWithContext(ctx, mails...)
	var again, never []error
	for i, m := range mails {
		why := m.SendError()
		switch {
		case m.IsDelivered():
			s.partly.note(d.Key, to[i])
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
	case !s.partly.has(d.Key):
		return nil, classified(errors.Join(never...))
	default:
		s.partly.forget(d.Key)
		return refused, nil
	}
}

// messageTo is the mail as all get it, on its way to one of them.
func (s *sender) messageTo(d *notify.Delivery, one string) (*gomail.Msg, error) {
	m, _, err := s.message(d)
	if err != nil {
		return nil, err
	}
	address, err := mail.ParseAddress(one)
	if err != nil {
		return nil, notify.AsPermanent(fmt.Errorf("email.to: %w", err))
	}
	var all []string
	for _, to := range m.GetAddrHeader(gomail.HeaderTo) {
		all = append(all, to.String())
	}
	m.SetAddrHeaderFromMailAddress(gomail.HeaderTo)
	m.SetGenHeaderPreformatted("To", strings.Join(all, ", "))
	m.BccMailAddress(address)
	return m, nil
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
