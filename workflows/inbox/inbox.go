// Package inbox is how workflows take messages: strictly decoded, recorded, each name a signal and an update.
package inbox

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock/api"
)

func InvalidSpec(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorInvalidSpec, nil)
}

func Payload(raw converter.RawValue) []byte {
	if raw.Payload() == nil {
		return nil
	}
	return raw.Payload().GetData()
}
