package main

import "fmt"

// failure ends a benchmark, as Fatal ends a test.
type failure struct{ error }

// noError ends the benchmark where there is an error. It is for the benchmark's own goroutine: what runs in others returns its errors.
func noError(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// must is the value, unless there is an error, which ends the benchmark.
func must[T any](value T, err error) T {
	noError(err)
	return value
}

// attempt does a part of a benchmark, and returns what ended it.
func attempt[T any](part func() T) (result T, err error) {
	defer func() {
		switch ended := recover().(type) {
		case nil:
		case failure:
			err = ended.error
		default:
			panic(ended)
		}
	}()
	return part(), nil
}

// named does a part of a benchmark. If that ends the benchmark, the error says in which part.
func named[T any](what string, part func() T) T {
	result, err := attempt(part)
	if err != nil {
		err = fmt.Errorf("%s: %w", what, err)
	}
	return must(result, err)
}
