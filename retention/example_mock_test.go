package retention_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mailretention/mailretention/retention"
	"github.com/stretchr/testify/mock"
)

// storeMock is a [retention.Store] whose answers a test sets, by testify.
type storeMock struct{ mock.Mock }

func (m *storeMock) Inventory(ctx context.Context) (retention.Inventory, error) {
	args := m.Called(ctx)
	return args.Get(0).(retention.Inventory), args.Error(1)
}

func (m *storeMock) Reconcile(ctx context.Context) (int, error) {
	args := m.Called(ctx)
	return args.Int(0), args.Error(1)
}

func (m *storeMock) DropTable(ctx context.Context, name string, progress func(int64) error) error {
	return m.Called(ctx, name, progress).Error(0)
}

func (m *storeMock) PruneMessages(ctx context.Context, cut retention.Cut, progress func(int64) error) error {
	return m.Called(ctx, cut, progress).Error(0)
}

// lockerMock is a [retention.Locker] whose answers a test sets.
type lockerMock struct{ mock.Mock }

func (m *lockerMock) Do(ctx context.Context, name string, fn func(context.Context) error) error {
	return m.Called(ctx, name, fn).Error(0)
}

// A program that embeds the package tests here how it copes with a table that can't be dropped.
func ExampleStore_mock() {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	store := new(storeMock)
	store.On("Inventory", mock.Anything).Return(retention.Inventory{Now: time.Now(), Tables: []retention.Table{
		{Name: "raw-1", Day: today.AddDate(0, 0, -1)}, {Name: "raw-90", Day: today.AddDate(0, 0, -90)},
	}}, nil)
	store.On("DropTable", mock.Anything, "raw-90", mock.Anything).Return(errors.New("lock wait timeout"))

	days := 30
	report, err := retention.Run(context.Background(), store, retention.Config{Name: "mx", Policy: retention.Policy{RawDays: &days}})
	fmt.Println(report.Outcome, report.Tables[0].Verdict, err)
	// Output: partial failed raw-90: lock wait timeout
}

// And here how it copes with a lease that another worker holds.
func ExampleLocker_mock() {
	locker := new(lockerMock)
	locker.On("Do", mock.Anything, "retention/mx", mock.Anything).Return(retention.ErrHeld)

	report, err := retention.Run(context.Background(), new(storeMock), retention.Config{Name: "mx", Locker: locker})
	fmt.Println(report.Outcome, errors.Is(err, retention.ErrHeld))
	// Output: held true
}
