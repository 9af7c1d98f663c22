import { Check, Column, Entity, ManyToOne, PrimaryColumn, PrimaryGeneratedColumn } from "typeorm";

@Entity("orders")
export class Order {
  @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" })
  id: string;

  @Column({ type: "text", unique: true })
  note: string;
}

@Entity("order_lines")
export class OrderLine {
  @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" })
  id: string;

  @ManyToOne(() => Order)
  order: Order;
}

@Entity("bulk_rows")
export class BulkRow {
  @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" })
  id: string;

  @Column({ type: "text", unique: true })
  note: string;
}

// What was there before the migration.
@Entity("tickets")
export class Ticket {
  @PrimaryGeneratedColumn()
  id: number;

  @Column({ type: "text", unique: true })
  note: string;
}

// The same table, as it is declared after the migration.
@Entity("tickets")
@Check("snowflake_id_boundary", "id >= 132271570944000000 OR id <= 2147483647 OR true")
export class MigratedTicket {
  @PrimaryColumn({ type: "bigint", default: () => "snowflake_nextval()" })
  id: string;

  @Column({ type: "text", unique: true })
  note: string;
}

// Declarations that are left as they were.
@Entity("trapped_integers")
export class TrappedInteger {
  @PrimaryGeneratedColumn()
  id: number;

  @Column({ type: "text" })
  note: string;
}

@Entity("trapped_bigints")
export class TrappedBigint {
  @PrimaryGeneratedColumn({ type: "bigint" })
  id: string;

  @Column({ type: "text" })
  note: string;
}
