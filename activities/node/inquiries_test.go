package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"

	"drydock.dev/drydock/api"
)

// TestQuestionsArePutTogether: while one question is under way the others gather, and none is answered by what the
// scheduler said before it was asked.
func TestQuestionsArePutTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server := askable()
		got := map[string]bool{}
		var mu sync.Mutex
		ask := func(id string) {
			answer, err := n.AskSlot(t.Context(), Slot{Scheduler: "s", RequestID: id})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			got[id] = answer.Held
		}
		go ask("first")
		synctest.Wait()
		for i := range 50 {
			go ask(fmt.Sprint("later-", i))
		}
		synctest.Wait()
		server.let <- answers{held: []string{"first", "later-7"}}
		synctest.Wait()
		if len(got) != 1 || !got["first"] {
			t.Errorf("after the first answer: %v", got)
		}
		server.let <- answers{held: []string{"later-9"}}
		synctest.Wait()
		if len(got) != 51 || got["later-7"] || !got["later-9"] {
			t.Errorf("after both answers: %v", got)
		}
		if len(server.asked) != 2 || len(server.asked[1]) != 50 {
			t.Errorf("asked %v", server.asked)
		}
	})
}

// TestOneWhoGivesUpTakesNobodyAlong: the question of others goes on, and an error goes to all who asked.
func TestOneWhoGivesUpTakesNobodyAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, server := askable()
		ctx, cancel := context.WithCancel(t.Context())
		failures := make(chan error, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				_, err := n.AskSlot(ctx, Slot{Scheduler: "s", RequestID: "r"})
				failures <- err
			}()
			synctest.Wait()
		}
		cancel()
		if err := <-failures; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up: %v", err)
		}
		server.let <- answers{held: []string{"r"}}
		broken := errors.New("no scheduler")
		server.let <- answers{err: broken}
		if err := <-failures; !errors.Is(err, broken) {
			t.Errorf("who waited: %v", err)
		}
		synctest.Wait()
		if len(n.inquiries.waiting) != 0 {
			t.Errorf("left: %v", n.inquiries.waiting)
		}
	})
}

func TestAQuestionIsBounded(t *testing.T) {
	var i inquiries
	i.waiting = map[string][]inquiry{"s": make([]inquiry, api.MaxSlotsAsked+1)}
	if first, second := i.next("s"), i.next("s"); len(first) != api.MaxSlotsAsked || len(second) != 1 {
		t.Errorf("%d and %d questions", len(first), len(second))
	}
}

type answers struct {
	held []string
	err  error
}

// schedulers answers as it is let.
type schedulers struct {
	let   chan answers
	asked [][]string
}

func askable() (*Activities, *schedulers) {
	s := &schedulers{let: make(chan answers)}
	temporal := &mocks.Client{}
	temporal.On("QueryWorkflow", mock.Anything, "s", "", api.QuerySlotsHeld, mock.Anything).Return(
		func(_ context.Context, _, _, _ string, args ...any) (converter.EncodedValue, error) {
			s.asked = append(s.asked, slices.Clone(args[0].(api.SlotQuestion).RequestIDs))
			answer := <-s.let
			payloads, err := converter.GetDefaultDataConverter().ToPayloads(api.SlotsHeld{Held: answer.held})
			return client.NewValue(payloads), errors.Join(err, answer.err)
		})
	return &Activities{Temporal: temporal}, s
}
