COPY t (v) FROM '{file}'
