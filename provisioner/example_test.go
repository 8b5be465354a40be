package provisioner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/mailretention/mailretention/internal/mariadb"
	"github.com/mailretention/mailretention/provisioner"
)

// startServer stands for the server that you have: it returns a pool on an empty one.
func startServer(ctx context.Context) (db *sql.DB, stop func()) {
	server, err := mariadb.Start(ctx, mariadb.Options{})
	if err != nil {
		log.Fatal(err)
	}
	db, err = sql.Open("mysql", server.DSN(""))
	if err != nil {
		log.Fatal(err)
	}
	return db, func() {
		if err := db.Close(); err != nil {
			log.Fatal(err)
		}
		if err := server.Close(); err != nil {
			log.Fatal(err)
		}
	}
}

// storeMail is what a mail server does with one mail. A real one does it in a transaction.
func storeMail(ctx context.Context, db *sql.DB, p *provisioner.Provisioner, table string, mail []byte) (bytes int64, err error) {
	_, err = db.ExecContext(ctx, "INSERT INTO "+p.Ident(table)+" (data) VALUES (?)", mail)
	return int64(len(mail)), err
}

func Example() {
	ctx := context.Background()
	db, stop := startServer(ctx)
	defer stop()

	p, err := provisioner.New(db, provisioner.Config{Database: "postal-server-17"})
	if err != nil {
		log.Fatal(err)
	}
	if err := p.Provision(ctx); err != nil {
		log.Fatal(err)
	}
	mail := []byte("Subject: Hello\r\n\r\nHello!\r\n")
	err = p.InsertInto(ctx, time.Now(), func(ctx context.Context, table string) (int64, error) {
		return storeMail(ctx, db, p, table, mail)
	})
	if err != nil {
		log.Fatal(err)
	}
	inventory, err := p.Inventory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, table := range inventory.Tables {
		fmt.Println("a raw table with", table.Bytes, "bytes of mail")
	}
	// Output: a raw table with 26 bytes of mail
}

// A schema of another mail system: no bookkeeping, DATETIME, other names.
func ExampleSchema() {
	schema := provisioner.Schema{
		RawPrefix:  "mail_",
		RawLayout:  "20060102",
		RawColumns: "id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, body longblob",
		Messages: provisioner.MessagesTable{
			Name: "mails", ID: "id", Time: "received_at", TimeKind: provisioner.DateTime,
			RawTable: "volume", RawIndex: "by_volume", Held: "on_hold",
		},
		Base: []provisioner.BaseTable{{
			Name: "mails",
			Columns: "id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, received_at datetime(6), volume varchar(64), on_hold bool," +
				" KEY by_volume (volume), KEY (on_hold)",
		}},
	}
	ctx := context.Background()
	db, stop := startServer(ctx)
	defer stop()
	p, err := provisioner.New(db, provisioner.Config{Database: "mail", Schema: schema})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(p.Provision(ctx))
	// Output: <nil>
}

func ExampleProvisioner_Inventory() {
	ctx := context.Background()
	db, stop := startServer(ctx)
	defer stop()
	p, err := provisioner.New(db, provisioner.Config{Database: "postal-server-17"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := p.Inventory(ctx); errors.Is(err, provisioner.ErrNotProvisioned) {
		fmt.Println("there is no such database, or it lacks a table")
	}
	if err := p.Provision(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "CREATE TABLE "+p.Ident("raw-backup")+" (id int)"); err != nil {
		log.Fatal(err)
	}
	inventory, err := p.Inventory(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(inventory.Tables), "raw tables, and left alone:", inventory.Ignored[0].Name)
	// Output:
	// there is no such database, or it lacks a table
	// 0 raw tables, and left alone: raw-backup
}

// Code that stores mail through InsertInto is tested without a server like this: sqlmock answers the bookkeeping's statements.
func Example_mock() {
	ctx := context.Background()
	db, mock, err := sqlmock.New()
	if err != nil {
		log.Fatal(err)
	}
	p, err := provisioner.New(db, provisioner.Config{Database: "postal-server-17"})
	if err != nil {
		log.Fatal(err)
	}
	mock.ExpectExec("INSERT INTO `postal-server-17`.`raw-2026-06-03`").WillReturnResult(sqlmock.NewResult(1, 1))
	mock.ExpectQuery("SELECT @@SESSION").WillReturnRows(sqlmock.NewRows([]string{"autocommit", "charset"}).AddRow(1, "utf8mb4"))
	mock.ExpectExec("UPDATE .*`postal-server-17`.`raw_message_sizes`").WithArgs(26, "raw-2026-06-03", "raw-2026-06-03").WillReturnResult(sqlmock.NewResult(0, 1))

	mail := []byte("Subject: Hello\r\n\r\nHello!\r\n")
	err = p.InsertInto(ctx, time.Date(2026, time.June, 3, 12, 0, 0, 0, time.UTC), func(ctx context.Context, table string) (int64, error) {
		return storeMail(ctx, db, p, table, mail)
	})
	fmt.Println(err, mock.ExpectationsWereMet())
	// Output: <nil> <nil>
}
