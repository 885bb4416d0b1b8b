package k8s

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// linger is how long a shared watch outlives its last user, so that a rollout does not open one per node.
const linger = 30 * time.Second

// Shared is one watch that the activities of a worker share. It runs only while somebody uses it, and for a little longer.
type Shared[T runtime.Object] struct {
	what  string
	start func(ctx context.Context, changing func(obj any, gone bool)) (*Watch[T], error)

	mu   sync.Mutex
	live *live[T]
}

// live is a shared watch that runs. Users and idle are guarded by the Shared.
type live[T runtime.Object] struct {
	watch  *Watch[T]
	cancel context.CancelFunc
	users  int
	idle   *time.Timer

	mu    sync.Mutex
	views map[*SharedView[T]]struct{}
}

// SharedView is one user's access to a shared watch; Close it when done.
type SharedView[T runtime.Object] struct {
	// Changed receives a token after any change that concerns the user; tokens coalesce.
	Changed chan struct{}
	// concerns reports whether a change does; nil means that each does.
	concerns func(obj T, gone bool) bool
	*live[T]
	shared *Shared[T]
	once   sync.Once
}

// share prepares a shared watch; nothing runs before the first user.
func share[T runtime.Object](what string, client func() rest.Interface, example T, o WatchOptions) *Shared[T] {
	return &Shared[T]{what: what, start: func(ctx context.Context, changing func(any, bool)) (*Watch[T], error) {
		o.Changing = changing
		return NewWatch(ctx, client(), example, o)
	}}
}

// View joins the watch, starting it if need be, and waits for its first complete copy.
func (s *Shared[T]) View(ctx context.Context) (*SharedView[T], error) {
	view, err := s.join(nil)
	if err != nil {
		return nil, err
	}
	if err := view.Synced(ctx); err != nil {
		view.Close()
		return nil, err
	}
	return view, nil
}

// Sync waits for the first complete copy of the watch, starting it if need be, and leaves it again.
func (s *Shared[T]) Sync(ctx context.Context) error {
	view, err := s.View(ctx)
	if err != nil {
		return err
	}
	view.Close()
	return nil
}

// Follow joins the watch for as long as ctx lives, and does not wait for anything. concerns is called with each change
// and reports whether it is passed on to Changed.
func (s *Shared[T]) Follow(ctx context.Context, concerns func(obj T, gone bool) bool) (*SharedView[T], error) {
	view, err := s.join(concerns)
	if err == nil {
		context.AfterFunc(ctx, view.Close)
	}
	return view, err
}

// join takes part in the watch. One that the API server refused is begun anew: the refusal may be over.
func (s *Shared[T]) join(concerns func(obj T, gone bool) bool) (*SharedView[T], error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil || s.live.watch.Err() != nil {
		began, err := s.begin()
		if err != nil {
			return nil, err
		}
		if s.live != nil {
			s.live.cancel() // its users see the refusal, and come back
		}
		s.live = began
	}
	l := s.live
	if l.idle != nil {
		l.idle.Stop()
		l.idle = nil
	}
	l.users++
	view := &SharedView[T]{Changed: make(chan struct{}, 1), concerns: concerns, live: l, shared: s}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.views[view] = struct{}{}
	return view, nil
}

func (s *Shared[T]) begin() (*live[T], error) {
	ctx, cancel := context.WithCancel(context.Background())
	l := &live[T]{cancel: cancel, views: map[*SharedView[T]]struct{}{}}
	watch, err := s.start(ctx, l.changing)
	if err != nil {
		cancel()
		return nil, err
	}
	l.watch = watch
	go func() {
		select {
		case <-watch.Refused:
			l.wake(func(*SharedView[T]) bool { return true })
		case <-ctx.Done():
		}
	}()
	return l, nil
}

// changing passes a change on to those whom it concerns.
func (l *live[T]) changing(obj any, gone bool) {
	changed, ok := obj.(T)
	if !ok {
		return
	}
	l.wake(func(v *SharedView[T]) bool { return v.concerns == nil || v.concerns(changed, gone) })
}

// wake asks each user without a lock: they have locks of their own.
func (l *live[T]) wake(whom func(*SharedView[T]) bool) {
	l.mu.Lock()
	views := slices.Collect(maps.Keys(l.views))
	l.mu.Unlock()
	for _, view := range views {
		if !whom(view) {
			continue
		}
		select {
		case view.Changed <- struct{}{}:
		default:
		}
	}
}

// leave takes a user's part out; the watch ends when it was idle for long enough.
func (s *Shared[T]) leave(l *live[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	l.idle = time.AfterFunc(linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.users > 0 {
			return
		}
		if s.live == l {
			s.live = nil
		}
		l.cancel()
	})
}

// Synced waits for the first complete copy. A refusal by the API server is returned at once, whenever it came.
func (v *SharedView[T]) Synced(ctx context.Context) error {
	if err := v.watch.Synced(ctx, v.shared.what); err != nil {
		return err
	}
	return v.Err()
}

// HasSynced reports whether the first complete copy is there.
func (v *SharedView[T]) HasSynced() bool { return v.watch.HasSynced() }

// List is what there is now, in no particular order.
func (v *SharedView[T]) List() []T { return v.watch.List() }

// By are the objects of one key, in no particular order.
func (v *SharedView[T]) By(key string) []T { return v.watch.By(key) }

// Get finds an object by "namespace/name", or by name where there is no namespace.
func (v *SharedView[T]) Get(key string) (T, bool) { return v.watch.Get(key) }

// Err is the refusal of the watch by the API server, after which it shows what once was; nil as long as there is none.
func (v *SharedView[T]) Err() error { return v.watch.Err() }

// Close leaves the watch.
func (v *SharedView[T]) Close() {
	v.once.Do(func() {
		v.live.mu.Lock()
		delete(v.views, v)
		v.live.mu.Unlock()
		v.shared.leave(v.live)
	})
}
