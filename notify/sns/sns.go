// Package sns publishes to topics of Amazon SNS.
package sns

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/notices"
)

// maxSubject and maxID are what SNS accepts, in characters.
const (
	maxSubject = 99
	maxID      = 128
)

type sender struct {
	config Config
	agent  string

	mu sync.Mutex
	// loaded keeps the credentials that the SDK has found, which it renews itself.
	loaded *aws.Config
}

func (s *sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	subject, text, err := d.Words(nil)
	if err != nil {
		return notify.Receipt{}, err
	}
	client, err := s.client(ctx, d)
	if err != nil {
		return notify.Receipt{}, err
	}
	input := &sns.PublishInput{TopicArn: &s.config.TopicARN, Message: &text, MessageAttributes: attributes(d.Events)}
	if subject != "" {
		input.Subject = aws.String(cutRunes(subject, maxSubject))
	}
	if strings.HasSuffix(s.config.TopicARN, ".fifo") {
		input.MessageGroupId, input.MessageDeduplicationId = aws.String(group(d)), aws.String(notify.Hash(d.Key))
	}
	if _, err := client.Publish(ctx, input); err != nil {
		return notify.Receipt{}, classified(err)
	}
	return notify.Receipt{}, nil
}

func (s *sender) client(ctx context.Context, d *notify.Delivery) (*sns.Client, error) {
	cfg, err := s.load(ctx)
	if err != nil {
		return nil, err
	}
	provider := cfg.Credentials
	if !s.config.AccessKeyID.IsZero() {
		id, err := d.Secret("sns.accessKeyID", s.config.AccessKeyID)
		if err != nil {
			return nil, err
		}
		key, err := d.Secret("sns.secretAccessKey", s.config.SecretAccessKey)
		if err != nil {
			return nil, err
		}
		provider = credentials.NewStaticCredentialsProvider(id, key, "")
	} else if found, err := provider.Retrieve(ctx); err == nil {
		d.Secrets.Add(found.AccessKeyID, found.SecretAccessKey, found.SessionToken)
	} else {
		return nil, fmt.Errorf("looking for AWS credentials: %w", err)
	}
	return sns.NewFromConfig(cfg, func(o *sns.Options) {
		o.Credentials = provider
		o.Retryer = aws.NopRetryer{} // Temporal retries
		if s.config.Endpoint != "" {
			o.BaseEndpoint = &s.config.Endpoint
		}
		if client, ok := cfg.HTTPClient.(*awshttp.BuildableClient); ok {
			o.HTTPClient = outbound.Limit(client.GetTransport(), outbound.Options{})
		}
	}), nil
}

// load reads AWS's own configuration once; after an error it is tried again.
func (s *sender) load(ctx context.Context) (aws.Config, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loaded != nil {
		return *s.loaded, nil
	}
	cfg, err := awsconfig.LoadDefaultConfig(ctx,
		awsconfig.WithRegion(s.config.region()), awsconfig.WithAppID(s.agent),
		awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(outbound.DefaultTimeout)))
	if err != nil {
		return cfg, fmt.Errorf("reading AWS's configuration: %w", err)
	}
	s.loaded = &cfg
	return cfg, nil
}

// attributes are what subscriptions can filter by: a string, or all strings of a digest.
func attributes(events []notices.Event) map[string]types.MessageAttributeValue {
	out := map[string]types.MessageAttributeValue{}
	for name, of := range map[string]func(notices.Event) string{
		"state":     func(e notices.Event) string { return string(e.State) },
		"node":      func(e notices.Event) string { return e.Node },
		"requestor": func(e notices.Event) string { return e.Requestor },
	} {
		var values []string
		for _, e := range events {
			if value := of(e); value != "" && !slices.Contains(values, value) {
				values = append(values, value)
			}
		}
		switch len(values) {
		case 0: // SNS refuses an empty attribute
		case 1:
			out[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &values[0]}
		default:
			list, _ := json.Marshal(values) // strings always marshal
			out[name] = types.MessageAttributeValue{DataType: aws.String("String.Array"), StringValue: aws.String(string(list))}
		}
	}
	return out
}

// group orders the messages of one node; digests are ordered among themselves.
func group(d *notify.Delivery) string {
	name := d.Events[0].Node
	if slices.ContainsFunc(d.Events, func(e notices.Event) bool { return e.Node != name }) {
		name = d.Channel
	}
	if len(name) > maxID {
		return notify.Hash(name)
	}
	return name
}

func cutRunes(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// classified makes permanent what AWS refuses. Throttling is refused with status 400 too, and tried again.
func classified(err error) error {
	var response *awshttp.ResponseError
	out := fmt.Errorf("publishing to SNS: %w", err)
	if !errors.As(err, &response) || retry.NewStandard().IsErrorRetryable(err) {
		return out
	}
	return notify.ByStatus(response.HTTPStatusCode(), out)
}
