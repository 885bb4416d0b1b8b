package notice

import (
	"context"
	"fmt"

	"github.com/slack-go/slack/slackutilsx"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/k8s/lease"
	"drydock.dev/drydock/k8s/objects"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/slack"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/secret"
)

// reply posts into the thread of a Lease, and begins one where there is none that lasts, or whose first message was deleted. It does not
// make the thread last longer.
func (s *Sender) reply(ctx context.Context, n notice.SlackThread, m notice.Message, known *secret.Redactor) error {
	known.Add(n.Token)
	thread, forgotten := s.thread(ctx, n, m.Title, "")
	if thread == "" {
		return forgotten
	}
	_, err := s.say(ctx, n, thread, m.Text)
	if slack.IsThreadGone(err) {
		if thread, forgotten = s.thread(ctx, n, m.Title, thread); thread == "" {
			return forgotten
		}
		_, err = s.say(ctx, n, thread, m.Text)
	}
	if err != nil {
		return err
	}
	if forgotten != nil {
		// Another try would begin another thread.
		return notify.AsPermanent(fmt.Errorf("the message is posted, and the next one begins a thread of its own: %w", forgotten))
	}
	return nil
}

// say posts a text, escaped as maintenance-controller does.
func (s *Sender) say(ctx context.Context, n notice.SlackThread, thread, text string) (timestamp string, err error) {
	return slack.Post{
		Channel: n.Channel, Thread: thread, Text: slackutilsx.EscapeMessage(text), CAFile: s.CAFile,
	}.AsBot(ctx, n.Token, s.SlackURL)
}

// thread is the thread to reply in, other than one that is gone; with an error too where its Lease does not remember it. Of notifications
// that find none at the same time one begins it.
func (s *Sender) thread(ctx context.Context, n notice.SlackThread, title, gone string) (string, error) {
	opened := s.opening.DoChan(n.LeaseNamespace+"/"+n.LeaseName+"/"+gone, func() (any, error) { return s.open(ctx, n, title, gone) })
	select {
	case result := <-opened:
		return result.Val.(string), result.Err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// open finds the thread of a Lease that lasts, or begins one and has the Lease remember it. If somebody else was faster, theirs
// counts, and this one stays a title without replies.
func (s *Sender) open(ctx context.Context, n notice.SlackThread, title, gone string) (string, error) {
	leases := lease.Client{Objects: objects.New(s.Client)}
	found, at, err := read(ctx, leases, n)
	if err != nil {
		return "", err
	}
	if thread := lasting(found, at); thread != "" && thread != gone {
		return thread, nil
	}
	thread, err := s.say(ctx, n, "", title)
	if err != nil {
		return "", err
	}
	err = leases.Take(ctx, found, lease.Claim{Namespace: n.LeaseNamespace, Name: n.LeaseName, Holder: thread, At: at.Earliest, For: n.Period})
	switch {
	case err == nil:
		return thread, nil
	case !apierrors.IsConflict(err):
		return thread, fmt.Errorf("having lease %s/%s remember the thread: %w", n.LeaseNamespace, n.LeaseName, err)
	}
	if found, at, err = read(ctx, leases, n); err != nil {
		return thread, err
	}
	if theirs := lasting(found, at); theirs != "" && theirs != gone {
		return theirs, nil
	}
	return thread, nil
}

// read reads the Lease of a thread, nil if there is none.
func read(ctx context.Context, leases lease.Client, n notice.SlackThread) (*coordinationv1.Lease, lease.Clock, error) {
	found, at, err := leases.Get(ctx, n.LeaseNamespace, n.LeaseName)
	if apierrors.IsNotFound(err) {
		return nil, at, nil
	}
	if err != nil {
		return nil, at, fmt.Errorf("reading lease %s/%s: %w", n.LeaseNamespace, n.LeaseName, err)
	}
	return found, at, nil
}

// lasting is the thread that a Lease remembers, empty if it has expired.
func lasting(found *coordinationv1.Lease, at lease.Clock) string {
	if found == nil || at.Earliest.Sub(lease.Renewed(found)) > lease.For(found) {
		return ""
	}
	return lease.Holder(found)
}
