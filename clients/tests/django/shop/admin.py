from django.contrib import admin

from .models import Comment, Order, Ticket

admin.site.register([Comment, Order, Ticket])
