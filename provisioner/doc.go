// Package provisioner creates, lists, prunes and drops the tables of a mail server's message database on MySQL or MariaDB.
package provisioner
